#!/usr/bin/env python3
"""Tools for the model, with the SDK: their schemas follow from the signatures.

The weather is made up, so that the example works offline. `forecast` is deferred: the model learns of it only when it
has asked for the weather once, which keeps the list of tools short.
"""

import zlib
from typing import Literal

from zutd_extension import Extension, ExtensionError, Prompt, ToolResult

CITIES = {"berlin": 9, "lisbon": 17, "nairobi": 19, "oslo": 4, "tokyo": 15}
SKIES = ("sunny", "cloudy", "rain", "fog", "windy")
Unit = Literal["C", "F"]

ext = Extension("weather", "1.0.0")


def report(city: str, day: int, unit: Unit) -> str:
    """The weather of a city, so many days from now; always the same."""
    if city.lower() not in CITIES:
        raise ExtensionError(f"no weather for {city}; there is: {', '.join(sorted(CITIES))}")
    luck = zlib.crc32(f"{city.lower()} {day}".encode())
    celsius = CITIES[city.lower()] + luck % 7 - 3
    degrees = celsius if unit == "C" else round(celsius * 9 / 5 + 32)
    return f"{city.title()}: {degrees}°{unit}, {SKIES[luck % len(SKIES)]}"


@ext.tool
def weather(city: str, unit: Unit = "C") -> ToolResult:
    """Current weather for a city.

    Args:
        city: the city's English name
        unit: Celsius or Fahrenheit
    """
    return ToolResult(report(city, 0, unit), activate=["forecast"])


@ext.tool(deferred=True)
def forecast(city: str, days: int = 3, unit: Unit = "C") -> str:
    """Weather for the coming days.

    Args:
        city: the city's English name
        days: how many, 1 to 7
        unit: Celsius or Fahrenheit
    """
    if not 1 <= days <= 7:
        raise ExtensionError("days must be 1 to 7")
    return "\n".join(f"+{day} {report(city, day, unit)}" for day in range(1, days + 1))


@ext.command("weather", "ask the agent for the weather: /weather Berlin")
def ask(args: str) -> Prompt:
    if not args:
        raise ExtensionError("which city? /weather Berlin")
    return Prompt(f"Show today's weather for {args} in one line.")


ext.run()
