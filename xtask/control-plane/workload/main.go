// Program workload is what the pods of a real node run in tests: it uses a
// known amount of one resource until it is told to end. It is static, so an
// image needs nothing else.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const usage = `usage: workload pause            wait
       workload burn MILLICORES  keep the CPU busy for that share of a core
       workload allocate MIB     hold that much memory`

func main() {
	// In a container nobody else answers to these.
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM)

	switch amount, err := amount(); {
	case len(os.Args) == 2 && os.Args[1] == "pause":
	case err == nil && os.Args[1] == "burn":
		// A loop uses one core at most.
		for ; amount > 0; amount -= 1000 {
			go burn(min(amount, 1000))
		}
	case err == nil && os.Args[1] == "allocate":
		held := make([]byte, amount<<20)
		// A page counts only once it was written to.
		for i := 0; i < len(held); i += 4096 {
			held[i] = 1
		}
		defer func() { _ = held[0] }()
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	<-ends
}

func amount() (int, error) {
	if len(os.Args) != 3 {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(os.Args[2])
}

// burn uses that many thousandths of a core. What others took from it it makes
// up for, but no more than a second of it: a pod whose quota is lifted again
// should go back to its share at once.
func burn(milli int) {
	const pause, most = 50 * time.Millisecond, time.Second
	runtime.LockOSThread()
	var owed time.Duration
	for last := time.Now(); ; {
		if milli < 1000 {
			time.Sleep(pause)
		}
		now := time.Now()
		owed = min(owed+now.Sub(last)*time.Duration(milli)/1000, most)
		last = now
		for begun := used(); owed > 0; {
			for range 10_000 {
			}
			done := used()
			owed -= done - begun
			begun = done
		}
	}
}

// used is the time the calling thread has spent on a core.
func used() time.Duration {
	const thread = 1 // RUSAGE_THREAD, which package syscall lacks
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
