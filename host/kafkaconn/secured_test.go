package kafkaconn_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The users of a secured broker. All have one password.
const (
	scramUser = "job"
	plainUser = "ann"
	tokenUser = "service"
	password  = "correct horse"
)

// securedPort is where the listeners of a secured broker begin, unless WASMILL_KAFKA_SECURED_PORT says otherwise: TLS and
// SASL; the controller; plain text, where everything is allowed; TLS and SASL with a certificate that has expired.
const securedPort = 27092

// secured is a real broker with TLS, SASL and ACLs.
type secured struct {
	t     testing.TB
	port  int
	ca    string // PEM
	admin *kadm.Client
	plain *kgo.Client // for whom everything is allowed
}

// startSecured starts a broker of its own with the script that WASMILL_KAFKA_SCRIPT names. The script knows `start` and
// `stop`, and takes BROKER_HOME, BROKER_PORT, BROKER_HEAP and BROKER_PROPERTIES from the environment.
func startSecured(t testing.TB) *secured {
	t.Helper()
	script := os.Getenv("WASMILL_KAFKA_SCRIPT")
	if script == "" {
		t.Skip("WASMILL_KAFKA_SCRIPT names no script that starts a broker")
	}
	s := &secured{t: t, port: securedPort}
	if text := os.Getenv("WASMILL_KAFKA_SECURED_PORT"); text != "" {
		var err error
		if s.port, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	properties := filepath.Join(home, "secured.properties")
	if err := os.WriteFile(properties, []byte(s.properties(home)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(verb string) error {
		cmd := exec.Command("bash", script, verb)
		cmd.Env = append(os.Environ(), "BROKER_HOME="+home, "BROKER_PORT="+strconv.Itoa(s.port), "BROKER_HEAP=384m",
			"BROKER_PROPERTIES="+properties, "BROKER_FORMAT=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", verb, err, out)
		}
		return nil
	}
	t.Cleanup(func() {
		if err := run("stop"); err != nil {
			t.Error(err)
		}
	})
	if err := run("start"); err != nil {
		t.Fatal(err)
	}
	s.connect()
	return s
}

// properties are those of the broker, beside what the script sets.
func (s *secured) properties(home string) string {
	ca := newAuthority(s.t)
	s.ca = ca.pem
	lines := []string{
		"",
		fmt.Sprintf("listeners=SECURE://127.0.0.1:%d,INSIDE://127.0.0.1:%d,EXPIRED://127.0.0.1:%d", s.port, s.port+2, s.port+3),
		fmt.Sprintf("advertised.listeners=SECURE://127.0.0.1:%d,INSIDE://127.0.0.1:%d,EXPIRED://127.0.0.1:%d", s.port, s.port+2, s.port+3),
		"listener.security.protocol.map=SECURE:SASL_SSL,CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,EXPIRED:SASL_SSL",
		"inter.broker.listener.name=INSIDE",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
	}
	for name, until := range map[string]time.Time{"secure": time.Now().Add(24 * time.Hour), "expired": time.Now().Add(-time.Hour)} {
		cert, key := ca.broker(until)
		store := filepath.Join(home, name+".pem")
		if err := os.WriteFile(store, []byte(key+cert+ca.pem), 0o600); err != nil {
			s.t.Fatal(err)
		}
		listener := "listener.name." + name + "."
		lines = append(lines, listener+"ssl.keystore.type=PEM", listener+"ssl.keystore.location="+store,
			listener+`plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_`+plainUser+`="`+password+`";`,
			listener+"scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
			listener+"scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
			listener+`oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`)
	}
	return strings.Join(lines, "\n") + "\n"
}

// connect makes the clients that may do everything, and the users of SCRAM.
func (s *secured) connect() {
	s.t.Helper()
	var err error
	if s.plain, err = kgo.NewClient(kgo.SeedBrokers(s.inside()), kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.plain.Close)
	s.admin = kadm.NewClient(s.plain)
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		answers, err := s.admin.AlterUserSCRAMs(s.t.Context(), nil, []kadm.UpsertSCRAM{
			{User: scramUser, Mechanism: mechanism, Iterations: 4096, Password: password},
		})
		if err == nil {
			err = answers.Error()
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *secured) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }
func (s *secured) inside() string  { return fmt.Sprintf("127.0.0.1:%d", s.port+2) }
func (s *secured) expired() string { return fmt.Sprintf("127.0.0.1:%d", s.port+3) }

// token is an unsecured JSON Web Signature (RFC 7515, alg none), which a broker without a provider of tokens takes.
func token(until time.Time) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"none"}`) + "." +
		part(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, tokenUser, until.Add(-time.Hour).Unix(), until.Unix())) + "."
}

// acl is one thing that a user may do.
type acl struct {
	kind string // topic, topics (by prefix), group, transactional ids (by prefix), cluster
	name string
	can  kadm.ACLOperation
}

func (a acl) String() string { return fmt.Sprintf("%s on %s %s", a.can, a.kind, a.name) }

func (a acl) builder(user string) *kadm.ACLBuilder {
	b := kadm.NewACLs().Allow("User:" + user).AllowHosts().Operations(a.can)
	switch a.kind {
	case "topic":
		return b.Topics(a.name).ResourcePatternType(kadm.ACLPatternLiteral)
	case "topics":
		return b.Topics(a.name).ResourcePatternType(kadm.ACLPatternPrefixed)
	case "group":
		return b.Groups(a.name).ResourcePatternType(kadm.ACLPatternLiteral)
	case "transactional ids":
		return b.TransactionalIDs(a.name).ResourcePatternType(kadm.ACLPatternPrefixed)
	}
	return b.Clusters().ResourcePatternType(kadm.ACLPatternLiteral)
}

func (s *secured) allow(t *testing.T, user string, all ...acl) {
	t.Helper()
	for _, a := range all {
		answers, err := s.admin.CreateACLs(t.Context(), a.builder(user))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range answers {
			if r.Err != nil {
				t.Fatalf("%s: %v %s", a, r.Err, r.ErrMessage)
			}
		}
		s.applied(t, a.builder(user), true)
	}
}

// applied waits until the broker goes by what the controller has written down: it is the controller that answers a change.
func (s *secured) applied(t *testing.T, which *kadm.ACLBuilder, there bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		all, err := s.admin.DescribeACLs(ctx, which)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range all {
			if r.Err != nil {
				t.Fatalf("%v %s", r.Err, r.ErrMessage)
			}
			found = found || len(r.Described) > 0
		}
		if found == there {
			return
		}
	}
}

// forbid takes all from a user.
func (s *secured) forbid(t *testing.T, user string) {
	t.Helper()
	all := kadm.NewACLs().Allow("User:" + user).AllowHosts().AnyResource().ResourcePatternType(kadm.ACLPatternAny).Operations()
	if _, err := s.admin.DeleteACLs(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	s.applied(t, all, false)
}
