package pipeline

import (
	"testing"
	"time"

	"github.com/wasmill/wasmill/host/job"
)

// TestReads: the mark of a source is another one when it reads something else, and the same when it only treats it in another way.
func TestReads(t *testing.T) {
	files := func(change func(*job.Source)) *job.Source {
		s := &job.Source{Name: "s", Files: &job.FilesSource{Path: "/in", Format: "csv", Compression: "auto", OnDataLoss: "stop"}}
		change(s)
		return s
	}
	kafka := func(change func(*job.Source)) *job.Source {
		s := &job.Source{Name: "s", Kafka: &job.KafkaSource{Connection: "c", Topics: []string{"a"}, OnDataLoss: "fail"}}
		change(s)
		return s
	}
	table := func(change func(*job.Source)) *job.Source {
		s := &job.Source{Name: "s", Delta: &job.DeltaSource{Path: "/t", OnChange: "stop"}}
		change(s)
		return s
	}
	for name, c := range map[string]struct {
		of     func(func(*job.Source)) *job.Source
		change func(*job.Source)
		other  bool
	}{
		"path":         {files, func(s *job.Source) { s.Files.Path = "/other" }, true},
		"format":       {files, func(s *job.Source) { s.Files.Format = "jsonl" }, true},
		"header":       {files, func(s *job.Source) { s.Files.CSV.Header = true }, true},
		"compression":  {files, func(s *job.Source) { s.Files.Compression = "gzip" }, true},
		"lost files":   {files, func(s *job.Source) { s.Files.OnDataLoss = "skip" }, false},
		"settle":       {files, func(s *job.Source) { s.Files.Settle = time.Second }, false},
		"batch":        {files, func(s *job.Source) { s.Batch.MaxRecords = 7 }, false},
		"event time":   {files, func(s *job.Source) { s.EventTime = &job.EventTime{JSON: "/t"} }, false},
		"topics":       {kafka, func(s *job.Source) { s.Kafka.Topics = []string{"b"} }, true},
		"connection":   {kafka, func(s *job.Source) { s.Kafka.Connection = "d" }, true},
		"isolation":    {kafka, func(s *job.Source) { s.Kafka.Isolation = "read_uncommitted" }, true},
		"lost offsets": {kafka, func(s *job.Source) { s.Kafka.OnDataLoss = "skip" }, false},
		"group":        {kafka, func(s *job.Source) { s.Kafka.Group = "g" }, false},
		"table":        {table, func(s *job.Source) { s.Delta.Path = "/u" }, true},
		"version":      {table, func(s *job.Source) { s.Delta.Version = 3 }, true},
		"changes":      {table, func(s *job.Source) { s.Delta.OnChange = "skip" }, false},
	} {
		was, is := reads(c.of(func(*job.Source) {})), reads(c.of(c.change))
		if was == "" || (was != is) != c.other {
			t.Errorf("%s: %q and %q, want another one: %t", name, was, is, c.other)
		}
	}
}
