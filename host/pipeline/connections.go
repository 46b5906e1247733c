package pipeline

import (
	"fmt"

	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/kafkaconn"
)

// cluster returns the settings of a connection to Kafka.
func cluster(j *job.Job, name string) (kafkaconn.Config, error) {
	for i := range j.Connections {
		if c := &j.Connections[i]; c.Kind == "kafka" && c.Name == name {
			return kafkaconn.Parse(name, c.Settings)
		}
	}
	return kafkaconn.Config{}, fmt.Errorf("no kafka connection %q", name)
}
