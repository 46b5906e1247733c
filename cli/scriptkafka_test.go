package cli_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// fakeKafka is a cluster in this process, or what only looks like one.
type fakeKafka struct {
	cluster  *kfake.Cluster
	address  string
	client   *kgo.Client  // may do everything
	accepted atomic.Int64 // connections
	tls      *tls.Config
	members  map[string]*kgo.Client // by group
}

type kafkasKey struct{}

// kafka starts and steers clusters:
//
//	kafka start NAME [OPTION ...]         a cluster; $NAME becomes its address. Options: TOPIC:PARTITIONS, tls, tls=expired,
//	                                      tls=elsewhere (writes ca.pem), users (job with password right, ACLs), max=BYTES
//	kafka silent|closing NAME             a listener that takes connections and says nothing, or hangs up
//	kafka stop NAME                       nobody listens there any more
//	kafka topic NAME TOPIC:PARTITIONS [KEY=VALUE]
//	kafka set NAME TOPIC KEY=VALUE        a setting of a topic
//	kafka delete NAME TOPIC
//	kafka produce NAME TOPIC FILE         each line a record; key=value gives it a key
//	kafka large NAME TOPIC BYTES          one record of so many bytes, which do not compress
//	kafka dated NAME TOPIC TIME VALUE     a record of that time
//	kafka truncate NAME TOPIC OFFSET      records of partition 0 before it are gone
//	kafka has NAME TOPIC COUNT            that many records are to be read committed, none twice
//	kafka allow|forbid NAME OPERATION KIND RESOURCE
//	kafka fault NAME ERROR COUNT [TOPIC]  produce requests are answered with it
//	kafka member NAME GROUP TOPIC         another consumer joins the group
//	kafka leave NAME GROUP                that consumer leaves
//	kafka committed NAME GROUP TOPIC SUM  the offsets of the group sum up to it
//	kafka calls NAME MAX                  at most so many connections came since the last time
func kafka(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: kafka COMMAND NAME ...")
	}
	all := ts.Value(kafkasKey{}).(map[string]*fakeKafka)
	command, name, args := args[0], args[1], args[2:]
	switch command {
	case "start":
		all[name] = startKafka(ts, args)
		ts.Setenv(name, all[name].address)
		return
	case "silent", "closing":
		all[name] = deafKafka(ts, command == "closing")
		ts.Setenv(name, all[name].address)
		return
	}
	k := all[name]
	if k == nil {
		ts.Fatalf("%s was not started", name)
	}
	arg := func(i int) string {
		if i >= len(args) {
			ts.Fatalf("kafka %s %s: %d arguments are too few", command, name, len(args))
		}
		return args[i]
	}
	number := func(i int) int64 {
		n, err := strconv.ParseInt(arg(i), 10, 64)
		ts.Check(err)
		return n
	}
	switch command {
	case "stop":
		k.cluster.Close()
	case "topic":
		k.create(ts, arg(0), args[1:]...)
	case "set":
		key, value, _ := strings.Cut(arg(1), "=")
		_, err := kadm.NewClient(k.client).AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Name: key, Value: &value}}, arg(0))
		ts.Check(err)
	case "delete":
		ts.Check(k.cluster.DeleteTopic(arg(0)))
	case "produce":
		for line := range strings.Lines(ts.ReadFile(arg(1))) {
			key, value, keyed := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			r := &kgo.Record{Topic: arg(0), Value: []byte(key)}
			if keyed {
				r.Key, r.Value = []byte(key), []byte(value)
			}
			ts.Check(k.client.ProduceSync(context.Background(), r).FirstErr())
		}
	case "large":
		r := &kgo.Record{Topic: arg(0), Value: make([]byte, number(1))}
		_, _ = mathrand.NewChaCha8([32]byte{}).Read(r.Value) // never fails
		ts.Check(k.client.ProduceSync(context.Background(), r).FirstErr())
	case "dated":
		at, err := time.Parse(time.RFC3339, arg(1))
		ts.Check(err)
		r := &kgo.Record{Topic: arg(0), Timestamp: at, Value: []byte(arg(2))}
		ts.Check(k.client.ProduceSync(context.Background(), r).FirstErr())
	case "truncate":
		ts.Check(k.cluster.DeleteRecords(arg(0), 0, number(1)))
	case "has":
		k.has(ts, arg(0), int(number(1)))
	case "allow", "forbid":
		k.acl(ts, command == "allow", arg(0), arg(1), arg(2))
	case "fault":
		k.fault(ts, arg(0), int(number(1)), append(args, "")[2])
	case "member":
		k.member(ts, arg(0), arg(1))
	case "leave":
		k.members[arg(0)].Close()
	case "committed":
		k.committed(ts, arg(0), arg(1), number(2))
	case "calls":
		if n := k.accepted.Swap(0); n > number(0) {
			ts.Fatalf("%d connections were made, at most %d were expected", n, number(0))
		}
	default:
		ts.Fatalf("no kafka %s", command)
	}
}

func (k *fakeKafka) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	l = &countedListener{l, &k.accepted}
	if k.tls != nil {
		l = tls.NewListener(l, k.tls)
	}
	return l, nil
}

type countedListener struct {
	net.Listener
	n *atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return c, err
}

func startKafka(ts *testscript.TestScript, options []string) *fakeKafka {
	k := &fakeKafka{members: map[string]*kgo.Client{}}
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.ListenFn(k.listen)}
	mine := []kgo.Opt{kgo.ProducerBatchMaxBytes(64 << 20), kgo.ProducerBatchCompression(kgo.NoCompression())}
	var topics []string
	for _, o := range options {
		kind, value, _ := strings.Cut(o, "=")
		switch kind {
		case "tls":
			k.tls = certificate(ts, value)
			mine = append(mine, kgo.DialTLSConfig(&tls.Config{InsecureSkipVerify: true}))
		case "users":
			opts = append(opts, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "job", "right"))
			mine = append(mine, kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism()))
		case "max":
			opts = append(opts, kfake.BrokerConfigs(map[string]string{"message.max.bytes": value}))
		default:
			topics = append(topics, o)
		}
	}
	var err error
	k.cluster, err = kfake.NewCluster(opts...)
	ts.Check(err)
	ts.Defer(k.cluster.Close)
	k.address = k.cluster.ListenAddrs()[0]
	k.client, err = kgo.NewClient(append(mine, kgo.SeedBrokers(k.address), kgo.DisableClientMetrics())...)
	ts.Check(err)
	ts.Defer(k.client.Close)
	for _, t := range topics {
		k.create(ts, t)
	}
	ts.Check(k.client.Ping(context.Background()))
	return k
}

func (k *fakeKafka) create(ts *testscript.TestScript, text string, settings ...string) {
	name, parts, _ := strings.Cut(text, ":")
	set := map[string]string{}
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		set[key] = value
	}
	n, err := strconv.Atoi(parts)
	ts.Check(err)
	ts.Check(k.cluster.CreateTopic(name, int32(n), set))
	k.client.PurgeTopicsFromClient(name) // it may know another one of that name
}

// has reads until the ends of all partitions.
func (k *fakeKafka) has(ts *testscript.TestScript, topic string, count int) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ends, err := kadm.NewClient(k.client).ListCommittedOffsets(ctx, topic)
	ts.Check(err)
	from := map[string]map[int32]kgo.Offset{topic: {}}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		from[topic][o.Partition] = kgo.NewOffset().AtStart()
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	opts := append(k.client.Opts(), kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	client, err := kgo.NewClient(opts...)
	ts.Check(err)
	defer client.Close()
	got, seen := 0, map[string]int{}
	for len(left) > 0 {
		f := client.PollFetches(ctx)
		ts.Check(f.Err())
		f.EachRecord(func(r *kgo.Record) {
			if r.Offset >= left[r.Partition]-1 {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				got++
				seen[string(r.Value)]++
			}
		})
	}
	for v, n := range seen {
		if n > 1 {
			ts.Fatalf("topic %s holds %.100q %d times", topic, v, n)
		}
	}
	if got != count {
		ts.Fatalf("topic %s holds %d records, want %d", topic, got, count)
	}
}

func (k *fakeKafka) acl(ts *testscript.TestScript, allow bool, operation, kind, resource string) {
	var op kadm.ACLOperation
	ts.Check(op.UnmarshalText([]byte(operation)))
	b := kadm.NewACLs().Allow("User:job").AllowHosts().Operations(op).ResourcePatternType(kadm.ACLPatternLiteral)
	if strings.HasSuffix(resource, "*") {
		resource = strings.TrimSuffix(resource, "*")
		b = b.ResourcePatternType(kadm.ACLPatternPrefixed)
	}
	switch kind {
	case "topic":
		b = b.Topics(resource)
	case "group":
		b = b.Groups(resource)
	case "transaction":
		b = b.TransactionalIDs(resource)
	default:
		ts.Fatalf("no ACL for a %s", kind)
	}
	var err error
	if allow {
		_, err = kadm.NewClient(k.client).CreateACLs(context.Background(), b)
	} else {
		_, err = kadm.NewClient(k.client).DeleteACLs(context.Background(), b)
	}
	ts.Check(err)
}

func (k *fakeKafka) fault(ts *testscript.TestScript, name string, count int, topic string) {
	for code := int16(1); code < 200; code++ {
		if e := kerr.TypedErrorForCode(code); e != nil && e.Message == name {
			k.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: e, Count: count})
			return
		}
	}
	ts.Fatalf("no error is called %s", name)
}

// member joins a group as a consumer and waits until it has partitions.
func (k *fakeKafka) member(ts *testscript.TestScript, group, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.address), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
	ts.Check(err)
	ts.Defer(client.Close)
	k.members[group] = client
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = k.cluster.WaitGroupStable(ctx, group, 1)
	ts.Check(err)
}

func (k *fakeKafka) committed(ts *testscript.TestScript, group, topic string, sum int64) {
	all, err := kadm.NewClient(k.client).FetchOffsets(context.Background(), group)
	ts.Check(err)
	got := int64(0)
	for _, o := range all[topic] {
		got += o.At
	}
	if got != sum {
		ts.Fatalf("group %s stands at %d in topic %s, want %d", group, got, topic, sum)
	}
}

// deafKafka takes connections and says nothing on them.
func deafKafka(ts *testscript.TestScript, closing bool) *fakeKafka {
	k := &fakeKafka{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	k.address = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			k.accepted.Add(1)
			if closing {
				_ = c.Close()
				continue
			}
			go func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() }()
		}
	}()
	return k
}

// certificate makes an authority, whose certificate goes to ca.pem, and one of a broker: good, expired, or elsewhere's.
func certificate(ts *testscript.TestScript, kind string) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "broker"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	switch kind {
	case "expired":
		leaf.NotAfter = time.Now().Add(-time.Hour)
	case "elsewhere":
		leaf.IPAddresses, leaf.DNSNames = nil, []string{"elsewhere.test"}
	case "":
	default:
		ts.Fatalf("no certificate is %s", kind)
	}
	mine, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	ts.Check(err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{mine}, PrivateKey: key}}}
}
