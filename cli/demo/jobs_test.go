package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmill/wasmill/host/job"
)

// TestJobFiles parses what is written, with and without a broker of the user's own.
func TestJobFiles(t *testing.T) {
	dir := t.TempDir()
	if err := writeJobs(dir, "127.0.0.1:4711", Config{Records: 10, Rate: 5, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	for _, name := range jobs {
		for _, draining := range []bool{false, true} {
			file := filepath.Join(dir, jobFile(name, draining))
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			j, err := job.Parse(file, text, job.Env{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if j.Name != name || j.Trigger.AvailableNow != draining || j.Checkpoint != filepath.Join(dir, checkpoints, name) {
				t.Errorf("%s: job %s, trigger %+v, checkpoint %s", file, j.Name, j.Trigger, j.Checkpoint)
			}
			if !bytes.Contains(text, []byte("127.0.0.1:4711")) {
				t.Errorf("%s does not name the broker", file)
			}
		}
		if !strings.Contains(byHand("x"), name+".yaml") {
			t.Errorf("the folder's README does not name %s", name)
		}
	}
	if err := writeJobs(filepath.Join(dir, "none"), "x", Config{}); code(err) != CodeFolder {
		t.Errorf("a folder that is not there: %v", err)
	}
}
