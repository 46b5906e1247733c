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

// cluster returns the settings of a connection to Kafka, which says so when a broker cannot be reached. A pipeline that is
// opened anew gets the same ones: they remember that the cluster has answered, so that one that hangs up at once is taken for
// one that is down, as behind a proxy, and not for one that wants TLS.
func (p *Program) cluster(j *job.Job, name string) (kafkaconn.Config, error) {
	for i := range j.Connections {
		c := &j.Connections[i]
		if c.Kind != "kafka" || c.Name != name {
			continue
		}
		key := name + "\n" + string(c.Settings)
		if conf, ok := p.clusters[key]; ok {
			return conf, nil
		}
		conf, err := kafkaconn.Parse(name, c.Settings)
		if err != nil {
			return conf, err
		}
		conf.Warn = p.warn("waiting for a broker")
		if p.clusters == nil {
			p.clusters = map[string]kafkaconn.Config{}
		}
		p.clusters[key] = conf
		return conf, nil
	}
	return kafkaconn.Config{}, fmt.Errorf("no kafka connection %q", name)
}
