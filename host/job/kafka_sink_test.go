package job

import (
	"strings"
	"testing"
)

// TestRevisionOfTopicsPublished: what makes a record fit counts; where it goes and how does not.
func TestRevisionOfTopicsPublished(t *testing.T) {
	const was = "connection: main, topicHeader: to, topics: [a, b]"
	const text = "apiVersion: wasmill/v1\nkind: Job\nmetadata: {name: t}\nspec:\n  checkpoint: c\n" +
		"  connections: {main: {kafka: {brokers: [\"b:9092\"]}}, other: {kafka: {brokers: [\"c:9092\"]}}}\n" +
		"  sources: [{name: s, generator: {rate: 1}}]\n  sinks: [{name: o, from: [s], kafka: {" + was + "}}]\n"
	canonical, want := revisionOf(t, text, RevisionInputs{})
	for change, same := range map[string]bool{
		"connection: other, topicHeader: to, topics: [b, a]": true,
		was + ", delivery: at-least-once, compression: none": true,
		was + ", maxMessage: 1000012B":                       true,
		was + ", maxMessage: 1MiB":                           false,
		was + ", topic: a":                                   false,
		"connection: main, topicHeader: at, topics: [a, b]":  false,
		"connection: main, topicHeader: to, topics: [a]":     false,
		"connection: main, topic: a":                         false,
	} {
		now, got := revisionOf(t, strings.Replace(text, was, change, 1), RevisionInputs{})
		if (got == want) != same {
			t.Errorf("%s: the revision is the same: %t", change, got == want)
		}
		changes, err := Compare(canonical, now)
		if err != nil || !same && (len(changes) != 1 || changes[0].Path != "sinks.o.kafka" || changes[0].Severity != Compatible) {
			t.Errorf("%s: %+v, %v", change, changes, err)
		}
	}
	_, one := revisionOf(t, strings.Replace(text, was, "connection: main, topic: a", 1), RevisionInputs{})
	if _, other := revisionOf(t, strings.Replace(text, was, "connection: other, topic: b", 1), RevisionInputs{}); one != other {
		t.Error("the name of a topic changes the revision")
	}
}
