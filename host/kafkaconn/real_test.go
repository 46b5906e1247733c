package kafkaconn_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/kafkaconn"
)

// TestSecured is everything that needs a real broker with TLS, SASL and ACLs, one after the other on the same one.
func TestSecured(t *testing.T) {
	s := startSecured(t)
	t.Run("mechanisms", s.mechanisms)
	t.Run("refusals", s.refusals)
	t.Run("job", s.job)
	t.Run("times", s.times)
}

// config is a connection to the secured listener.
func (s *secured) config(mechanism string) kafkaconn.Config {
	sasl := &kafkaconn.SASL{Mechanism: mechanism, Username: scramUser, Password: password}
	switch mechanism {
	case kafkaconn.Plain:
		sasl.Username = plainUser
	case kafkaconn.OAuthBearer:
		sasl = &kafkaconn.SASL{Mechanism: mechanism, Token: token(time.Now().Add(time.Hour))}
	}
	return kafkaconn.Config{Name: "main", Brokers: []string{s.address()}, TLS: &kafkaconn.TLS{CA: s.ca}, SASL: sasl}
}

// mechanisms: each lets its user in, and only as that user.
func (s *secured) mechanisms(t *testing.T) {
	for mechanism, user := range map[string]string{
		kafkaconn.Plain: plainUser, kafkaconn.Scram256: scramUser, kafkaconn.Scram512: scramUser, kafkaconn.OAuthBearer: tokenUser,
	} {
		t.Run(mechanism, func(t *testing.T) {
			topic := "for-" + mechanism
			s.topic(t, topic)
			s.forbid(t, user)
			if err := look(t.Context(), s.config(mechanism), topic); codeOf(err) != kafkaconn.CodeDenied {
				t.Fatalf("without leave: %v", err)
			}
			s.allow(t, user, acl{"topic", topic, kadm.OpRead})
			defer s.forbid(t, user)
			if err := look(t.Context(), s.config(mechanism), topic); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// look asks for a topic with a client of its own, and puts what comes of it into words.
func look(ctx context.Context, c kafkaconn.Config, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	opts, err := c.Options()
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(opts, kgo.DisableClientMetrics())...)
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := kadm.NewClient(client).Metadata(ctx, topic)
	if err == nil {
		err = found.Topics[topic].Err
	}
	return c.Fault("topic "+topic, err)
}

// refusals: what is wrong with a connection is told apart, at once.
func (s *secured) refusals(t *testing.T) {
	s.topic(t, "refusals")
	for name, x := range map[string]struct {
		change    func(*kafkaconn.Config)
		code, way string
	}{
		"password":           {func(c *kafkaconn.Config) { c.SASL.Password = "wrong" }, kafkaconn.CodeAuth, "user and password"},
		"user":               {func(c *kafkaconn.Config) { c.SASL.Username = "nobody" }, kafkaconn.CodeAuth, "user and password"},
		"another mechanism":  {func(c *kafkaconn.Config) { c.SASL.Mechanism = kafkaconn.Plain }, kafkaconn.CodeAuth, "mechanism"},
		"token is over":      {func(c *kafkaconn.Config) { c.SASL = s.oldToken() }, kafkaconn.CodeAuth, "token"},
		"no SASL":            {func(c *kafkaconn.Config) { c.SASL = nil }, kafkaconn.CodeAuth, "give the connection the `sasl`"},
		"SASL to plain text": {func(c *kafkaconn.Config) { c.TLS, c.Brokers = nil, []string{s.inside()} }, kafkaconn.CodeAuth, "take `sasl` out"},
		"plain to TLS":       {func(c *kafkaconn.Config) { c.TLS = nil }, kafkaconn.CodeTLS, "give the connection `tls: {}`"},
		"bare to TLS":        {func(c *kafkaconn.Config) { c.TLS, c.SASL = nil, nil }, kafkaconn.CodeTLS, "give the connection `tls: {}`"},
		"TLS to plain":       {func(c *kafkaconn.Config) { c.Brokers = []string{s.inside()} }, kafkaconn.CodeTLS, "take `tls` out"},
		"unknown authority":  {func(c *kafkaconn.Config) { c.TLS.CA = "" }, kafkaconn.CodeTLS, "into `ca`"},
		"wrong host":         {func(c *kafkaconn.Config) { c.TLS.ServerName = "elsewhere.test" }, kafkaconn.CodeTLS, "`serverName`"},
		"expired":            {func(c *kafkaconn.Config) { c.Brokers = []string{s.expired()} }, kafkaconn.CodeTLS, "renew the brokers' certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.config(kafkaconn.Scram512)
			x.change(&c)
			begin := time.Now()
			err := look(t.Context(), c, "refusals")
			var f *fault.Error
			if !errors.As(err, &f) || f.Code() != x.code || !strings.Contains(f.Hint(), x.way) || strings.Contains(err.Error(), password) {
				t.Errorf("%v (%s; %s), want %s with %q", err, codeOf(err), hintOf(err), x.code, x.way)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("asked again for %s, though it cannot go by: %v", time.Since(begin), err)
			}
		})
	}
}

func (s *secured) oldToken() *kafkaconn.SASL {
	return &kafkaconn.SASL{Mechanism: kafkaconn.OAuthBearer, Token: token(time.Now().Add(-time.Hour))}
}

func hintOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Hint()
	}
	return ""
}

func codeOf(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Code()
	}
	return ""
}

// topic makes a topic of four partitions.
func (s *secured) topic(t *testing.T, name string) {
	t.Helper()
	if r, err := s.admin.CreateTopic(t.Context(), 4, 1, nil, name); err != nil {
		t.Fatal(name, err, r.ErrMessage)
	}
}

// needed is what a job needs that reads one topic and publishes to another, exactly once, and nothing more. The leave to
// make the marker topic is needed once, so it comes first.
var needed = []acl{
	{"topics", kafkaconn.MarkerPrefix, kadm.OpCreate},
	{"topic", "in", kadm.OpRead},
	{"topic", "out", kadm.OpWrite},
	{"topics", kafkaconn.MarkerPrefix, kadm.OpRead},
	{"topics", kafkaconn.MarkerPrefix, kadm.OpWrite},
	{"transactional ids", kafkaconn.TransactionPrefix, kadm.OpWrite},
	{"group", "lag", kadm.OpRead},
}

const securedJob = `apiVersion: wasmill/v1
kind: Job
metadata: {name: secured}
spec:
  checkpoint: ./checkpoint
  trigger: {availableNow: true}
  connections:
    main:
      kafka:
        brokers: ["${env:BROKER}"]
        tls: {ca: "${file:ca.pem}"}
        sasl: {mechanism: scram-sha-512, username: job, password: "${env:PASSWORD}"}
  sources: [{name: orders, kafka: {connection: main, topics: [in], group: lag}}]
  transforms: [{name: pass, from: [orders], module: ./echo.wasm}]
  sinks: [{name: clean, from: [pass], kafka: {connection: main, topic: out}}]
`

// program is the real program with a job in a folder of its own.
type program struct {
	t      *testing.T
	s      *secured
	dir    string
	binary string
}

func (s *secured) program(t *testing.T, job string) *program {
	t.Helper()
	p := &program{t: t, s: s, dir: t.TempDir(), binary: filepath.Join(t.TempDir(), "wasmill")}
	if out, err := exec.Command("go", "build", "-o", p.binary, "../../cli/wasmill").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	module, err := os.ReadFile("../../abi/kit/wasm/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"job.yaml": job, "ca.pem": s.ca, "echo.wasm": string(module)} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// run runs the job to its end, and returns what it says.
func (p *program) run() (string, error) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.binary, "run", "--progress", "none", "job.yaml")
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "BROKER="+p.s.address(), "PASSWORD="+password)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// job runs the real program with exactly the ACLs that are needed, and with each of them missing. Whatever it is refused,
// the topic holds every record once in the end.
func (s *secured) job(t *testing.T) {
	p := s.program(t, securedJob)
	s.topic(t, "in")
	s.topic(t, "out")
	total := 0
	for i := range needed {
		t.Run("without "+needed[i].String(), func(t *testing.T) {
			total += s.fill(t, "in", total)
			s.forbid(t, scramUser)
			s.allow(t, scramUser, append(needed[:i:i], needed[i+1:]...)...)
			out, err := p.run()
			needed[i].checkRefusal(t, out, err)
		})
		s.allow(t, scramUser, needed[i])
		if out, err := p.run(); err != nil {
			t.Fatalf("with all that is needed: %v\n%s", err, out)
		}
		s.once(t, "out", total)
	}
}

// times: a record whose time the brokers do not take stops the batch before it is decided, and goes through once they do.
func (s *secured) times(t *testing.T) {
	s.topic(t, "early")
	s.topic(t, "late")
	s.allow(t, scramUser, append(needed, acl{"topic", "early", kadm.OpRead}, acl{"topic", "late", kadm.OpWrite})...)
	p := s.program(t, strings.NewReplacer("[in]", "[early]", "topic: out", "topic: late").Replace(securedJob))
	far := "9223372036854775807"
	s.set(t, "early", "message.timestamp.after.max.ms", far)
	for i, at := range []time.Time{time.Unix(1, 0), time.Now().Add(100 * 24 * time.Hour)} {
		r := &kgo.Record{Topic: "early", Timestamp: at, Value: fmt.Appendf(nil, `{"n":%d,"counts":true}`, i)}
		if err := s.plain.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	out, err := p.run()
	if err == nil || !strings.Contains(out, "error[kafka.sink.refused]") || !strings.Contains(out, "message.timestamp.after.max.ms") {
		t.Errorf("a record of the future: %v\n%s", err, out)
	}
	s.once(t, "late", 0)
	s.set(t, "late", "message.timestamp.after.max.ms", far)
	if out, err := p.run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.once(t, "late", 2)
}

func (s *secured) set(t *testing.T, topic, key, value string) {
	t.Helper()
	if _, err := s.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: key, Value: &value}}, topic); err != nil {
		t.Fatal(err)
	}
}

// checkRefusal demands that a run without an ACL names it. Offsets of a group are for others to see: without leave the
// job goes on, with a warning.
func (a acl) checkRefusal(t *testing.T, out string, err error) {
	t.Helper()
	if stops := a.kind != "group"; (err != nil) != stops {
		t.Errorf("it ends with %v:\n%s", err, out)
	}
	operation := a.can.String()
	operation = operation[:1] + strings.ToLower(operation[1:])
	if way := regexp.MustCompile(`allow User:job [^:]*\b` + operation + `\b[^:]* ` + regexp.QuoteMeta(a.name) + ": `kafka-acls "); !way.MatchString(out) {
		t.Errorf("nothing says %s:\n%s", way, out)
	}
}

// fill writes 100 records to a topic, in transactions of which every other is aborted, and returns how many count.
func (s *secured) fill(t *testing.T, topic string, from int) int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.inside()), kgo.TransactionalID("fill"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, how := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			r := &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"n":%d,"counts":%t}`, from+i, bool(how))}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
	return 50
}

// once demands that readers of committed records see each of so many records once.
func (s *secured) once(t *testing.T, topic string, total int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.inside()), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	seen := map[string]int{}
	for n := 0; n < total; {
		f := client.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", n, total, err)
		}
		f.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++; n++ })
	}
	for i := range total {
		if v := fmt.Sprintf(`{"n":%d,"counts":true}`, i); seen[v] != 1 {
			t.Fatalf("%s is there %d times, of %d", v, seen[v], len(seen))
		}
	}
	if len(seen) != total {
		t.Fatalf("%d different records, want %d", len(seen), total)
	}
}
