#compdef wasmill
# zsh completion for wasmill: source <(wasmill completion zsh)
_wasmill() {
	local -a found
	local line
	while IFS= read -r line; do
		found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done < <(wasmill __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
	if (( ${#found} )); then
		_describe 'wasmill' found
	else
		_files
	fi
}
compdef _wasmill wasmill
