// River beside relaybus: drains jobs that are there already, or inserts and works them at once.
//
// Started as `river <url> drain|work tuned|default <jobs>`. It prints `ready` when the jobs are there, waits for a line, and
// answers with one line of JSON. A job counts when River has told its subscribers that it completed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	insertBatch = 5_000
	// Jobs that wait at most while jobs are inserted and worked at once.
	backlog = 20_000
	note    = "a hundred and sixty bytes of payload, as the other sides of the comparison have it, give or take a few that name the fields of this text"
)

type noopArgs struct {
	Number int    `json:"number"`
	Note   string `json:"note"`
}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
}

func (*noopWorker) Work(context.Context, *river.Job[noopArgs]) error { return nil }

type answer struct {
	Jobs       int     `json:"jobs"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) != 4 {
		return fmt.Errorf("usage: river <url> drain|work tuned|default <jobs>")
	}
	jobs, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, arguments[0])
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate(ctx, pool); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config(arguments[2] == "tuned"))
	if err != nil {
		return err
	}
	works := arguments[1] == "work"
	if !works {
		if err := insert(ctx, client, jobs, func(int) bool { return true }); err != nil {
			return err
		}
	}
	return measure(ctx, client, jobs, works)
}

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// The tuned settings are those of River's own benchmark.
func config(tuned bool) *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &noopWorker{})
	config := &river.Config{
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: workers,
	}
	if tuned {
		config.FetchCooldown = 2 * time.Millisecond
		config.FetchPollInterval = 20 * time.Millisecond
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2_000}}
	}
	return config
}

// Inserts in batches, after `room` has said that there is room for another one.
func insert(ctx context.Context, client *river.Client[pgx.Tx], jobs int, room func(inserted int) bool) error {
	for number := 0; number < jobs; {
		for !room(number) {
			time.Sleep(time.Millisecond)
		}
		size := min(insertBatch, jobs-number)
		batch := make([]river.InsertManyParams, size)
		for i := range batch {
			batch[i] = river.InsertManyParams{Args: noopArgs{Number: number + i, Note: note}}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
		number += size
	}
	return nil
}

func measure(ctx context.Context, client *river.Client[pgx.Tx], jobs int, works bool) error {
	events, cancel := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: 50_000,
		Kinds:    []river.EventKind{river.EventKindJobCompleted},
	})
	defer cancel()
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	began, cpu := time.Now(), cpuSeconds()
	if err := client.Start(ctx); err != nil {
		return err
	}
	var done atomic.Int64
	failed := make(chan error, 1)
	if works {
		room := func(inserted int) bool { return inserted-int(done.Load()) < backlog }
		go func() { failed <- insert(ctx, client, jobs, room) }()
	}
	for int(done.Load()) < jobs {
		select {
		case <-events:
			done.Add(1)
		case err := <-failed:
			if err != nil {
				return err
			}
		}
	}
	result := answer{Jobs: jobs, Seconds: time.Since(began).Seconds(), CPUSeconds: cpuSeconds() - cpu}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	return client.Stop(ctx)
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func seconds(time syscall.Timeval) float64 {
	return float64(time.Sec) + float64(time.Usec)/1e6
}
