package kafkaconn

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// TestWayOfACL: who is refused learns what to allow on what, by a command that can be copied.
func TestWayOfACL(t *testing.T) {
	const head = "`kafka-acls --bootstrap-server b:9092 --add --allow-principal User:job "
	for name, x := range map[string]struct {
		use   Use
		place string
		err   error
		want  string
	}{
		"to read":      {Reads, "topic in", kerr.TopicAuthorizationFailed, "allow User:job Read on topic in: " + head + "--operation Read --topic in`"},
		"to write":     {Writes, "topic out", kerr.TopicAuthorizationFailed, "allow User:job Write on topic out: " + head + "--operation Write --topic out`"},
		"either":       {"", "topic x", kerr.TopicAuthorizationFailed, "allow User:job Read and Write on topic x: " + head + "--operation Read --operation Write --topic x`"},
		"some topic":   {Writes, "", kerr.TopicAuthorizationFailed, "allow User:job Write on topic NAME: " + head + "--operation Write --topic NAME`"},
		"a marker":     {Writes, "topic __wasmill.q", kerr.TopicAuthorizationFailed, "allow User:job Create, Read and Write on topics that begin with __wasmill.: " + head + "--operation Create --operation Read --operation Write --topic __wasmill. --resource-pattern-type prefixed`"},
		"transactions": {Writes, "wasmill.q.main", kerr.TransactionalIDAuthorizationFailed, "allow User:job Write on transactional ids that begin with wasmill.: " + head + "--operation Write --transactional-id wasmill. --resource-pattern-type prefixed`"},
		"group":        {Reads, "group lag", kerr.GroupAuthorizationFailed, "allow User:job Read on group lag: " + head + "--operation Read --group lag`"},
		"some group":   {Reads, "", kerr.GroupAuthorizationFailed, "allow User:job Read on the consumer group: " + head + "--operation Read --group NAME`"},
		"cluster":      {Writes, "", kerr.ClusterAuthorizationFailed, "allow User:job IdempotentWrite on the cluster: " + head + "--operation IdempotentWrite --cluster`"},
	} {
		c := Config{Name: "main", Brokers: []string{"b:9092"}, Use: x.use, SASL: &SASL{Username: "job", Password: "s3cret"}}
		if code, way := c.classify(x.place, x.err); code != CodeDenied || way != x.want {
			t.Errorf("%s: %s %s\nwant %s", name, code, way, x.want)
		}
	}
	c := Config{Name: "main", Brokers: []string{"b:9092"}, SASL: &SASL{Mechanism: OAuthBearer, Token: "s3cret"}}
	if _, way := c.classify("topic x", kerr.TopicAuthorizationFailed); !strings.HasPrefix(way, "allow the job's user Read and Write") || strings.Contains(way, "s3cret") {
		t.Errorf("without a name: %s", way)
	}
}
