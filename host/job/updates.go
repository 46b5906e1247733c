package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// updates finds where updates come from.
type updates struct {
	job     *Job
	modules map[string]ModuleFacts
}

// origin names the port whose updates an input hands on, "" when it has none. A port has updates when its manifest says so;
// a stage without keys keeps nothing it could resolve updates with, so it hands on those it gets.
func (u *updates) origin(in Input) string {
	i := slices.IndexFunc(u.job.Transforms, func(t Transform) bool { return t.Name == in.Name })
	if i < 0 {
		return ""
	}
	t := &u.job.Transforms[i]
	if m := u.modules[t.Name].Manifest; m != nil {
		for k, p := range m.Outputs {
			if (p.Name == in.Port || in.Port == "" && k == 0) && p.Updates {
				return in.Ref()
			}
		}
	}
	if t.Keyed() {
		return ""
	}
	for _, up := range t.From {
		if origin := u.origin(up); origin != "" {
			return origin
		}
	}
	return ""
}

// takesUpdates names the modes in which a sink takes updates.
func (s *Sink) takesUpdates() []string {
	switch {
	case s.Files != nil && s.Files.Format == "jsonl":
		return []string{ModeChangelog}
	case s.Files != nil:
		return nil
	case s.table() != nil:
		return []string{ModeUpsert}
	}
	return []string{ModeUpsert, ModeChangelog}
}

// updates refuses a sink that appends what is meant to take the place of something earlier.
func (c *checker) updates(s *Sink, path string, origin func(Input) string) {
	if s.Mode != ModeAppend {
		return
	}
	for i, in := range s.From {
		from := origin(in)
		if from == "" {
			continue
		}
		way := "files of format jsonl take them with mode: changelog, tables with mode: upsert, kafka and stdout with both"
		if modes := s.takesUpdates(); modes != nil {
			way = "give the sink mode: " + strings.Join(modes, " or mode: ")
		}
		c.wrongAt(fmt.Sprintf("%s[%d]", path, i), CodeModule, updating(in, from)+", and a sink with mode append would keep them all side by side; "+way, "")
	}
}

// updating says of an input that it has updates.
func updating(in Input, origin string) string {
	if origin != in.Ref() {
		return fmt.Sprintf("%s passes on the updates of %s, each in place of the earlier one of its key", in.Ref(), origin)
	}
	return in.Ref() + " gives updates, each in place of the earlier one of its key"
}

// stockUpdates refuses updates that a stock transform would take for further records. What a module of the user's does
// with them is its own affair.
func (c *checker) stockUpdates(t *Transform, path string, origin func(Input) string) {
	for i, in := range t.From {
		why := t.mistakesUpdates(i)
		if why == "" {
			continue
		}
		if from := origin(in); from != "" {
			c.wrongAt(fmt.Sprintf("%s[%d]", path, i), CodeModule, fmt.Sprintf("%s, and stock:%s %s", updating(in, from), t.Module.Stock, why), "")
		}
	}
}

// mistakesUpdates says what a stock transform makes of updates that come by an input, and what to do instead; "" when it
// takes them for what they are, or is no stock transform.
func (t *Transform) mistakesUpdates(input int) string {
	const records = "; let it read an output of records, such as out of tumbling with emit: close or final of top"
	var config struct {
		Input string          `json:"input"`
		Where json.RawMessage `json:"where"`
	}
	_ = json.Unmarshal(t.Config, &config) // what is wrong with it, the module itself says
	switch t.Module.Stock {
	case "aggregate":
		if config.Input != "updates" {
			return "would count and sum each of them as another record; its config takes them with input: updates and id: <pointer>"
		}
	case "tumbling", "sliding", "session":
		return "would count and sum each of them as another record of its window" + records
	case "top":
		return "would rank each of them beside the one that it replaces" + records
	case "dedup":
		return "would pass the first of them and drop the newer ones" + records
	case "join":
		return "would join each of them, and a pair is never taken back" + records
	case "lookup":
		if input != 0 {
			return "would look up each of them for itself; only its first input, the table, takes them" + records
		}
	case "filter":
		return "would drop those that its condition does not hold for, and leave the earlier ones in their place" + records
	case "map":
		if config.Where != nil {
			return "would drop those that where does not hold for, and leave the earlier ones in their place" + records
		}
	}
	return ""
}
