# Completion of zutd for bash. Made by scripts/gen_completion.py; do not edit.
_zutd_words() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -W "$(tr ' ' '\n' <<<"$1")" -- "$cur"))
}
_zutd_paths() {
    compopt -o filenames 2>/dev/null
    local IFS=$'\n'
    COMPREPLY=($(compgen "$1" -- "$cur"))
}
_zutd() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} place=''
    COMPREPLY=()
    if ((COMP_CWORD > 1)); then
        case ${COMP_WORDS[1]} in
        completion|ext|session|trust|rpc) place=${COMP_WORDS[1]} ;;
        esac
    fi
    if ((COMP_CWORD > 2)); then
        case $place in
        ext|session) place="$place ${COMP_WORDS[2]}" ;;
        esac
    fi
    case $place:$prev in
    :--mode) _zutd_words 'rpc print stream json'; return ;;
    :--on-eof) _zutd_words 'finish cancel'; return ;;
    :--provider) :; return ;;
    :--model) :; return ;;
    :--base-url) :; return ;;
    :--wire) _zutd_words 'openai anthropic'; return ;;
    :--api-key) :; return ;;
    :--reasoning) _zutd_words 'off minimum low medium high xhigh max'; return ;;
    :--temperature) :; return ;;
    :--cwd) _zutd_paths -d; return ;;
    :--max-steps) :; return ;;
    :--max-cost-usd) :; return ;;
    :--max-tokens-total) :; return ;;
    :--tools) :; return ;;
    :--system-prompt) :; return ;;
    :--append-system-prompt) :; return ;;
    :--output-schema) _zutd_paths -f; return ;;
    :--output-mode) _zutd_words 'auto native words'; return ;;
    :--stats) _zutd_paths -f; return ;;
    :--log-level) _zutd_words 'debug info warning error'; return ;;
    :-r|:--resume) :; return ;;
    :--session) _zutd_paths -f; return ;;
    :-e|:--ext) _zutd_paths -d; return ;;
    :--ext-sandbox) _zutd_words 'auto require off'; return ;;
    rpc:--mode) _zutd_words 'rpc print stream json'; return ;;
    rpc:--on-eof) _zutd_words 'finish cancel'; return ;;
    rpc:--provider) :; return ;;
    rpc:--model) :; return ;;
    rpc:--base-url) :; return ;;
    rpc:--wire) _zutd_words 'openai anthropic'; return ;;
    rpc:--api-key) :; return ;;
    rpc:--reasoning) _zutd_words 'off minimum low medium high xhigh max'; return ;;
    rpc:--temperature) :; return ;;
    rpc:--cwd) _zutd_paths -d; return ;;
    rpc:--max-steps) :; return ;;
    rpc:--max-cost-usd) :; return ;;
    rpc:--max-tokens-total) :; return ;;
    rpc:--tools) :; return ;;
    rpc:--system-prompt) :; return ;;
    rpc:--append-system-prompt) :; return ;;
    rpc:--output-schema) _zutd_paths -f; return ;;
    rpc:--output-mode) _zutd_words 'auto native words'; return ;;
    rpc:--stats) _zutd_paths -f; return ;;
    rpc:--log-level) _zutd_words 'debug info warning error'; return ;;
    rpc:-r|rpc:--resume) :; return ;;
    rpc:--session) _zutd_paths -f; return ;;
    rpc:-e|rpc:--ext) _zutd_paths -d; return ;;
    rpc:--ext-sandbox) _zutd_words 'auto require off'; return ;;
    'ext list:-e'|'ext list:--ext') _zutd_paths -d; return ;;
    'ext list:--cwd') _zutd_paths -d; return ;;
    'ext doctor:-e'|'ext doctor:--ext') _zutd_paths -d; return ;;
    'ext doctor:--ext-sandbox') _zutd_words 'auto require off'; return ;;
    'ext doctor:--cwd') _zutd_paths -d; return ;;
    'ext install:--build') _zutd_words go; return ;;
    'ext install:--scope') _zutd_words 'global project'; return ;;
    'ext install:--cwd') _zutd_paths -d; return ;;
    'ext remove:--scope') _zutd_words 'global project'; return ;;
    'ext remove:--cwd') _zutd_paths -d; return ;;
    'ext update:--scope') _zutd_words 'global project'; return ;;
    'ext update:--cwd') _zutd_paths -d; return ;;
    'ext enable:--scope') _zutd_words 'global project'; return ;;
    'ext enable:--cwd') _zutd_paths -d; return ;;
    'ext disable:--scope') _zutd_words 'global project'; return ;;
    'ext disable:--cwd') _zutd_paths -d; return ;;
    'ext trust:-e'|'ext trust:--ext') _zutd_paths -d; return ;;
    'ext trust:--cwd') _zutd_paths -d; return ;;
    'ext logs:-e'|'ext logs:--ext') _zutd_paths -d; return ;;
    'ext logs:--cwd') _zutd_paths -d; return ;;
    'ext new:--lang') _zutd_words 'python typescript node shell go'; return ;;
    'ext new:--dir') _zutd_paths -d; return ;;
    'ext test:--skip') :; return ;;
    'session list:--query') :; return ;;
    'session list:--limit') :; return ;;
    'session list:--cwd') _zutd_paths -d; return ;;
    'session show:--branch') :; return ;;
    'session show:--cwd') _zutd_paths -d; return ;;
    'session explain:--branch') :; return ;;
    'session explain:--cwd') _zutd_paths -d; return ;;
    'session fork:--at') :; return ;;
    'session fork:--branch') :; return ;;
    'session fork:--title') :; return ;;
    'session fork:--cwd') _zutd_paths -d; return ;;
    'session export:--format') _zutd_words 'html markdown zut zutd'; return ;;
    'session export:--branch') :; return ;;
    'session export:--cwd') _zutd_paths -d; return ;;
    'session import:--cwd') _zutd_paths -d; return ;;
    'session repair:--cwd') _zutd_paths -d; return ;;
    'session rename:--cwd') _zutd_paths -d; return ;;
    'session delete:--cwd') _zutd_paths -d; return ;;
    esac
    case $place in
    '')
        if [[ $cur == -* ]]; then _zutd_words '-h --help -v --version -p --print --stream --json --rpc --mode --on-eof --provider --model --base-url --wire --api-key --insecure --reasoning --temperature --list-models --cwd --max-steps --max-cost-usd --max-tokens-total --tools --no-tools --system-prompt --append-system-prompt --no-yolo -y --yes -nc --no-context-files --no-skills --no-skill --output-schema --output-mode --stats --log-level -c --continue -r --resume --session --read-only --no-session -e --ext --no-ext --no-extensions --zot --watch --ext-sandbox --trust-project'
        else _zutd_words 'completion ext session trust rpc'; fi ;;
    completion)
        if [[ $cur == -* ]]; then _zutd_words '-h --help'
        else _zutd_words 'bash zsh fish'; fi ;;
    rpc)
        if [[ $cur == -* ]]; then _zutd_words '-h --help -v --version -p --print --stream --json --rpc --mode --on-eof --provider --model --base-url --wire --api-key --insecure --reasoning --temperature --list-models --cwd --max-steps --max-cost-usd --max-tokens-total --tools --no-tools --system-prompt --append-system-prompt --no-yolo -y --yes -nc --no-context-files --no-skills --no-skill --output-schema --output-mode --stats --log-level -c --continue -r --resume --session --read-only --no-session -e --ext --no-ext --no-extensions --zot --watch --ext-sandbox --trust-project'
        else :; fi ;;
    trust)
        if [[ $cur == -* ]]; then _zutd_words '-h --help --remove --list'
        else _zutd_paths -d; fi ;;
    ext)
        if [[ $cur == -* ]]; then _zutd_words '-h --help'
        else _zutd_words 'list doctor install remove update enable disable trust logs new test'; fi ;;
    'ext list')
        if [[ $cur == -* ]]; then _zutd_words '-e --ext --no-extensions --no-ext --zot --json --cwd -h --help'
        else :; fi ;;
    'ext doctor')
        if [[ $cur == -* ]]; then _zutd_words '-e --ext --no-extensions --no-ext --zot --ext-sandbox --json --cwd -h --help'
        else :; fi ;;
    'ext install')
        if [[ $cur == -* ]]; then _zutd_words '--build --scope --json --cwd -h --help'
        else _zutd_paths -d; fi ;;
    'ext remove')
        if [[ $cur == -* ]]; then _zutd_words '-y --yes --scope --json --cwd -h --help'
        else _zutd_words "$(zutd ext list 2>/dev/null | awk '$1 ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ && NR > 1 { print $1 }')"; fi ;;
    'ext update')
        if [[ $cur == -* ]]; then _zutd_words '--scope --json --cwd -h --help'
        else _zutd_words "$(zutd ext list 2>/dev/null | awk '$1 ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ && NR > 1 { print $1 }')"; fi ;;
    'ext enable')
        if [[ $cur == -* ]]; then _zutd_words '--scope --json --cwd -h --help'
        else _zutd_words "$(zutd ext list 2>/dev/null | awk '$1 ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ && NR > 1 { print $1 }')"; fi ;;
    'ext disable')
        if [[ $cur == -* ]]; then _zutd_words '--scope --json --cwd -h --help'
        else _zutd_words "$(zutd ext list 2>/dev/null | awk '$1 ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ && NR > 1 { print $1 }')"; fi ;;
    'ext trust')
        if [[ $cur == -* ]]; then _zutd_words '-e --ext --zot --json --cwd -h --help'
        else _zutd_words "$(zutd ext list 2>/dev/null | awk '$1 ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ && NR > 1 { print $1 }')"; fi ;;
    'ext logs')
        if [[ $cur == -* ]]; then _zutd_words '-f --follow -e --ext --zot --json --cwd -h --help'
        else _zutd_words "$(zutd ext list 2>/dev/null | awk '$1 ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ && NR > 1 { print $1 }')"; fi ;;
    'ext new')
        if [[ $cur == -* ]]; then _zutd_words '--lang --dir --json -h --help'
        else :; fi ;;
    'ext test')
        if [[ $cur == -* ]]; then _zutd_words '--skip --json -h --help'
        else _zutd_paths -d; fi ;;
    session)
        if [[ $cur == -* ]]; then _zutd_words '-h --help'
        else _zutd_words 'list show explain fork export import repair rename delete'; fi ;;
    'session list')
        if [[ $cur == -* ]]; then _zutd_words '-a --all --query --limit --json --cwd -h --help'
        else :; fi ;;
    'session show')
        if [[ $cur == -* ]]; then _zutd_words '--branch --json --cwd -h --help'
        else _zutd_words "$(zutd session list 2>/dev/null | awk '$1 ~ /^[0-9a-f-]+$/ && NR > 1 { print $1 }')"; fi ;;
    'session explain')
        if [[ $cur == -* ]]; then _zutd_words '--branch --json --cwd -h --help'
        else _zutd_words "$(zutd session list 2>/dev/null | awk '$1 ~ /^[0-9a-f-]+$/ && NR > 1 { print $1 }')"; fi ;;
    'session fork')
        if [[ $cur == -* ]]; then _zutd_words '--at --branch --title --json --cwd -h --help'
        else _zutd_words "$(zutd session list 2>/dev/null | awk '$1 ~ /^[0-9a-f-]+$/ && NR > 1 { print $1 }')"; fi ;;
    'session export')
        if [[ $cur == -* ]]; then _zutd_words '--format --branch --json --cwd -h --help'
        else _zutd_words "$(zutd session list 2>/dev/null | awk '$1 ~ /^[0-9a-f-]+$/ && NR > 1 { print $1 }')"; fi ;;
    'session import')
        if [[ $cur == -* ]]; then _zutd_words '--json --cwd -h --help'
        else _zutd_paths -f; fi ;;
    'session repair')
        if [[ $cur == -* ]]; then _zutd_words '--json --cwd -h --help'
        else _zutd_words "$(zutd session list 2>/dev/null | awk '$1 ~ /^[0-9a-f-]+$/ && NR > 1 { print $1 }')"; fi ;;
    'session rename')
        if [[ $cur == -* ]]; then _zutd_words '--json --cwd -h --help'
        else _zutd_words "$(zutd session list 2>/dev/null | awk '$1 ~ /^[0-9a-f-]+$/ && NR > 1 { print $1 }')"; fi ;;
    'session delete')
        if [[ $cur == -* ]]; then _zutd_words '--json --cwd -h --help'
        else _zutd_words "$(zutd session list 2>/dev/null | awk '$1 ~ /^[0-9a-f-]+$/ && NR > 1 { print $1 }')"; fi ;;
    esac
}
complete -F _zutd zutd
