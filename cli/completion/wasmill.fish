# fish completion for wasmill: wasmill completion fish | source
function __wasmill_complete
    set -l words (commandline -opc)
    wasmill __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c wasmill -a '(__wasmill_complete)'
