"""What the agent is told before the conversation: the system prompt, instruction files, skills."""

from collections.abc import Callable

from zutd.agent.prompt import system_prompt
from zutd.daemon.workspace import Instructions, is_trusted, read_instructions, read_system_prompt
from zutd.extensions.skills import Skills, find_skills, manifest_text, user_roots
from zutd.settings import Settings

Bundles = Callable[[], tuple[tuple[str, str, tuple[str, ...]], ...]]
"""Gives (extension, its directory, its manifest's ``skills``) of the extensions that count."""


class Briefing:
    """Made when it is first asked for, and again when the user trusts the project or extensions were started anew.

    In between it is the same text, so that a provider's cache holds.
    """

    def __init__(self, settings: Settings, bundles: Bundles) -> None:
        self._settings = settings
        self._bundles = bundles
        self._trusted = settings.trust_project or is_trusted(settings.cwd, settings.home)
        self._skills: Skills | None = None
        self._instructions: Instructions | None = None
        self._text: str | None = None

    def trust(self) -> None:
        """The user trusts the project."""
        self._trusted = True
        self.read_again()

    def read_again(self) -> None:
        """What was read may be another now: extensions bring skills, and take them away."""
        self._skills = self._instructions = self._text = None

    @property
    def skills(self) -> Skills:
        """The skills there are."""
        if self._skills is None:
            settings = self._settings
            if settings.skills:
                roots = user_roots(settings.cwd, settings.home, settings.environ, trusted=self._trusted)
                self._skills = find_skills(roots, self._bundles())
            else:
                self._skills = Skills(by_name={})
        return self._skills

    @property
    def instructions(self) -> Instructions:
        """The instruction files."""
        if self._instructions is None:
            settings = self._settings
            if settings.context_files:
                self._instructions = read_instructions(settings.cwd, settings.home, trusted=self._trusted)
            else:
                self._instructions = Instructions(text="", files=(), left_out=())
        return self._instructions

    @property
    def text(self) -> str:
        """The system prompt."""
        if self._text is None:
            settings = self._settings
            self._text = system_prompt(
                cwd=settings.cwd,
                replacement=settings.system_prompt or read_system_prompt(settings.home),
                additions=(*settings.append_system_prompt, self.instructions.text, manifest_text(self.skills)),
            )
        return self._text
