package sandbox

// Inspect is the digest of an instance's memory and mutable globals as they are now, 64 hex digits: for comparisons of
// engines and processors. It is "" for an instance that is closed.
func Inspect(in Instance) string {
	i, ok := in.(*instance)
	if !ok || i.mod == nil || i.region == nil {
		return ""
	}
	return digestOfImage(i)
}
