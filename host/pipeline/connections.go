package pipeline

import (
	"fmt"

	"github.com/wasmill/wasmill/host/job"
	"github.com/wasmill/wasmill/host/kafkaconn"
	"github.com/wasmill/wasmill/host/registry"
)

// CheckConnection says what is wrong with the settings of a connection. It reaches for nothing.
func CheckConnection(name, kind string, settings []byte) error {
	var err error
	switch kind {
	case "kafka":
		_, err = kafkaconn.Parse(name, settings)
	case "schemaRegistry":
		_, err = registry.Parse(name, settings)
	case "postgres", "sqlite":
		_, _, err = databaseOf(name, kind, "", settings)
	}
	return err
}

// cluster returns the settings of a connection to Kafka, which says so when a broker cannot be reached.
func (p *Program) cluster(j *job.Job, name string) (kafkaconn.Config, error) {
	for i := range j.Connections {
		if c := &j.Connections[i]; c.Kind == "kafka" && c.Name == name {
			conf, err := kafkaconn.Parse(name, c.Settings)
			conf.Warn = p.warn("waiting for a broker")
			return conf, err
		}
	}
	return kafkaconn.Config{}, fmt.Errorf("no kafka connection %q", name)
}
