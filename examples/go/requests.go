// Goroutines that handle requests, counted and timed by percid, through cgo.
//
//	go run requests.go
//
// What holds for Go:
//
//   - A goroutine may run on another thread after every call, but during a call into C it stays on one.
//     Every percid function does its work within one call, so nothing is left behind on a thread.
//   - The threads of a program with cgo are made by pthread_create(), as percid asks for. They get their
//     area for critical sections from the C library. The signals by which the runtime preempts
//     goroutines interrupt a section like any other signal: it begins again.
//   - A counter or histogram is a word that percid does not keep the address of: it may lie in Go's
//     memory. The rest (pools, rings ...) are handles, and no addresses.
//   - A call into C costs more than what percid does there, so let a C function do many at once, as
//     handle_batch() does, where counts are frequent.
//   - A callback into Go (percid_local_with() of an exported function) may be preempted, but stays on
//     its thread. Keep it short: it holds the value of its CPU meanwhile.
package main

/*
#cgo pkg-config: percid
#include <percid.h>

// The functions of percid.h are inline: cgo calls them like others.

// Where a count is needed for every small thing, the loop belongs into C.
static void handle_batch(percid_counter *bytes, percid_histogram *sizes, uint32_t first, uint32_t requests)
{
    for (uint32_t i = first; i < first + requests; i++) {
        percid_counter_add(bytes, i % 1000);
        percid_histogram_record(sizes, i % 1000);
    }
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	goroutines = 64
	batches    = 1000
	batch      = 1000
)

// Words of value 0, which are valid.
var (
	handled   C.percid_counter
	bytes     C.percid_counter
	sizes     C.percid_histogram
	durations C.percid_histogram
)

func work() {
	for i := 0; i < batches; i++ {
		start := time.Now()
		C.handle_batch(&bytes, &sizes, C.uint32_t(i*batch), batch)
		C.percid_counter_add(&handled, batch)
		C.percid_histogram_record(&durations, C.uint64_t(time.Since(start).Nanoseconds()))
		// On another thread, perhaps, in the next round.
		runtime.Gosched()
	}
}

// How many values a histogram has, and what a share of them does not exceed.
func quantile(histogram *C.percid_histogram, share float64) (uint64, uint64) {
	var snapshot *C.percid_snapshot
	if result := C.percid_histogram_snapshot(histogram, &snapshot); result < 0 {
		panic(fmt.Sprintf("percid_histogram_snapshot: %d", result))
	}
	defer C.percid_snapshot_free(snapshot)
	var value C.uint64_t
	if result := C.percid_snapshot_quantile(snapshot, C.double(share), &value); result < 0 {
		panic(fmt.Sprintf("percid_snapshot_quantile: %d", result))
	}
	return uint64(C.percid_snapshot_count(snapshot)), uint64(value)
}

func main() {
	source := C.GoString(C.percid_source_name(C.int(C.percid_init())))
	fmt.Printf("percid %s, IDs from the source %s\n", C.GoString(C.percid_version()), source)
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			work()
		}()
	}
	all.Wait()
	requests, sum := int64(C.percid_counter_sum(&handled)), int64(C.percid_counter_sum(&bytes))
	fmt.Printf("%d requests by %d goroutines, %d bytes\n", requests, goroutines, sum)
	count, median := quantile(&sizes, 0.5)
	timed, slow := quantile(&durations, 0.99)
	fmt.Printf("half of %d were of up to %d bytes; 99 %% of %d batches took up to %d ns\n", count, median, timed, slow)
	const expected = goroutines * batches * batch
	if requests != expected || sum != expected/1000*(999*1000/2) || count != expected || timed != goroutines*batches {
		fmt.Println("something was lost")
		os.Exit(1)
	}
}
