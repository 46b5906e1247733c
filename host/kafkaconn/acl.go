package kafkaconn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// The names that a job's own objects on a cluster begin with: what its user needs leave for, in ACLs by prefix.
const (
	// MarkerPrefix begins the name of a marker topic.
	MarkerPrefix = "__wasmill."
	// TransactionPrefix begins a transactional id.
	TransactionPrefix = "wasmill."
)

// need is an ACL that is missing: what to allow on which resource.
type need struct {
	operations []string
	resource   string // in words
	flags      string // of kafka-acls
}

// wayOfACL says which ACL is missing, by what was asked for and what the broker refused. Brokers name neither the
// operation nor, in most answers, the resource.
func (c *Config) wayOfACL(place string, err error) string {
	n := c.need(place, err)
	principal, who := "User:NAME", "the job's user"
	if c.SASL != nil && c.SASL.Username != "" {
		principal = "User:" + c.SASL.Username
		who = principal
	}
	var flags strings.Builder
	for _, o := range n.operations {
		flags.WriteString(" --operation " + o)
	}
	return fmt.Sprintf("allow %s %s on %s: `kafka-acls --bootstrap-server %s --add --allow-principal %s%s %s`",
		who, list(n.operations), n.resource, strings.Join(c.Brokers, ","), principal, flags.String(), n.flags)
}

func (c *Config) need(place string, err error) need {
	kind, name, _ := strings.Cut(place, " ")
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return need{[]string{"Write"}, "transactional ids that begin with " + TransactionPrefix, "--transactional-id " + TransactionPrefix + " --resource-pattern-type prefixed"}
	case errors.Is(err, kerr.GroupAuthorizationFailed) && kind == "group":
		return need{[]string{"Read"}, "group " + name, "--group " + name}
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return need{[]string{"Read"}, "the consumer group", "--group NAME"}
	case strings.HasPrefix(name, MarkerPrefix):
		return need{[]string{"Create", "Read", "Write"}, "topics that begin with " + MarkerPrefix, "--topic " + MarkerPrefix + " --resource-pattern-type prefixed"}
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		if kind != "topic" {
			name = "NAME"
		}
		return need{c.Use.operations(), "topic " + name, "--topic " + name}
	}
	return need{[]string{"IdempotentWrite"}, "the cluster", "--cluster"}
}

// operations are those that a use of a topic needs. Describe comes with each of them.
func (u Use) operations() []string {
	switch u {
	case Reads:
		return []string{"Read"}
	case Writes:
		return []string{"Write"}
	}
	return []string{"Read", "Write"}
}

func list(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
