package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/groupcache/groupcache-go/v3"
	"github.com/groupcache/groupcache-go/v3/transport"
	"github.com/groupcache/groupcache-go/v3/transport/peer"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringgroupcache"
)

// nodeVariable is set for a member of the cluster.
const nodeVariable = "RINGGROUPCACHE_NODE"

// addresses are where a member can be reached.
type addresses struct {
	Peer  string // by the other members
	Front string // by users
}

// counts are what a member has done.
type counts struct {
	Loads     int // from the database
	FromPeers int // values that other members have sent
}

// valueOf is the database.
func valueOf(key string) string { return strings.Repeat("value of "+key+"\n", 10) }

// serve is a member. It writes its addresses to out, and reads from in the addresses of all, any
// number of times, until in ends with its parent.
func serve(in io.Reader, out io.Writer) error {
	ctx, quiet, fromPeers := context.Background(), slog.New(slog.DiscardHandler), &counter{}
	daemon, err := groupcache.ListenAndServe(ctx, "127.0.0.1:0", groupcache.Options{
		CacheFactory: ringgroupcache.Factory(ringcache.Options{}),
		HashFn:       xxhash.Sum64, // the default, FNV-1, gives keys that differ at the end to one owner
		Logger:       quiet,        // of peers that do not answer
		Transport: transport.NewHttpTransport(transport.HttpTransportOptions{
			Logger: quiet,
			Client: &http.Client{Transport: fromPeers, Timeout: 10 * time.Second},
		}),
	})
	if err != nil {
		return err
	}
	var loads atomic.Int64
	load := func(_ context.Context, key string, to transport.Sink) error {
		loads.Add(1)
		return to.SetString(valueOf(key), time.Now().Add(time.Hour))
	}
	products, err := daemon.GetInstance().NewGroup("products", 256<<20, groupcache.GetterFunc(load))
	if err != nil {
		return err
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(front, handler(products, &loads, &fromPeers.n)) }()

	answers := json.NewEncoder(out)
	if err := answers.Encode(addresses{daemon.ListenAddress(), front.Addr().String()}); err != nil {
		return err
	}
	for messages := json.NewDecoder(in); ; {
		var all []string
		if err := messages.Decode(&all); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var peers []peer.Info
		for _, address := range all {
			peers = append(peers, peer.Info{Address: address})
		}
		if err := daemon.SetPeers(ctx, peers); err != nil {
			return err
		}
		if err := answers.Encode(len(peers)); err != nil {
			return err
		}
	}
}

// counter counts the answers of other members.
type counter struct{ n atomic.Int64 }

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusOK {
		c.n.Add(1)
	}
	return response, err
}

// handler answers users.
func handler(products groupcache.Group, loads, fromPeers *atomic.Int64) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/value", func(w http.ResponseWriter, r *http.Request) {
		var value transport.ByteView
		err := products.Get(r.Context(), r.URL.Query().Get("key"), transport.ByteViewSink(&value))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_, _ = value.WriteTo(w)
	})
	mux.HandleFunc("/counts", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(counts{int(loads.Load()), int(fromPeers.Load())})
	})
	return mux
}
