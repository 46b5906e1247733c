# bash completion for wasmill: source <(wasmill completion bash)
_wasmill() {
	local current="${COMP_WORDS[COMP_CWORD]}"
	local IFS=$'\n'
	COMPREPLY=($(wasmill __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
	if [ ${#COMPREPLY[@]} -eq 0 ]; then
		COMPREPLY=($(compgen -f -- "$current"))
	fi
}
complete -o filenames -F _wasmill wasmill
