package job

import (
	"fmt"
	"strconv"
)

// DeltaSource reads a Delta table as a stream: a snapshot of it, then what is committed afterwards.
type DeltaSource struct {
	Path string // the table's directory
	// Snapshot begins with the rows that are there at the start. Otherwise the first version that is read is Version, or
	// with Latest the next one to come.
	Snapshot, Latest bool
	Version          int64
	// OnChange is what happens at a commit that removes rows: stop, skip (the whole commit), ignore-deletes (a commit that
	// only removes; what also adds stops).
	OnChange   string
	OnDataLoss string // stop, skip
}

func describeDeltaSource() Field {
	return Field{
		Name: "delta", Type: TypeObject, Component: true, Example: "{path: ./lake}",
		Doc: "Reads a Delta table as a stream: the rows that it has at the start, then those of each version, in the order of its log. Each row becomes a JSON object.",
		Fields: []Field{
			{Name: "path", Type: TypePath, Required: true, Interpolated: true, Example: "./lake", Doc: "The table's directory."},
			{
				Name: "start", Type: TypeString, Default: "snapshot", Example: "latest",
				Doc: "Where a job without progress begins: snapshot, all rows that are there, then what is added; latest, what is added from now on; or the number " +
					"of the first version whose rows are read.",
			},
			{
				Name: "onChange", Type: TypeEnum, Values: []string{"stop", "skip", "ignore-deletes"}, Default: "stop",
				Doc: "What happens at a version that removes rows: stop; skip the whole version; or pass over it if it only removes, and stop if it also adds.",
			},
			{
				Name: "onDataLoss", Type: TypeEnum, Values: []string{"stop", "skip"}, Default: "stop",
				Doc: "What happens when a version or a file that is to be read is gone: stop, or go on with a warning.",
			},
		},
	}
}

func buildDeltaSource(v *value) *DeltaSource {
	s := &DeltaSource{Path: v.at("path").text, OnChange: v.at("onChange").text, OnDataLoss: v.at("onDataLoss").text}
	switch start := v.at("start").text; start {
	case "snapshot":
		s.Snapshot = true
	case "latest":
		s.Latest = true
	default:
		s.Version, _ = deltaVersion(start)
	}
	return s
}

func deltaVersion(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

func (c *checker) deltaSource(v *value, s *Source) {
	if p := v.at("path"); p.good() && isGlob(p.text) {
		c.wrongAt(p.path, CodeValue, "a table's path is a directory, without *, ? and [", "")
	}
	start := v.at("start")
	if _, number := deltaVersion(start.text); start.good() && !number && !s.Delta.Snapshot && !s.Delta.Latest {
		c.wrongAt(start.path, CodeValue, fmt.Sprintf("%q is no start; it is snapshot, latest, or the number of a version", cut(start.text)), closest(start.text, []string{"snapshot", "latest"}))
	}
}
