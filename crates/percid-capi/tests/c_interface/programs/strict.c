/* Everything inline, for compilers that warn of all they can. */
#include <percid.h>
/* Again. */
#include <percid.h>

static percid_counter counter = PERCID_COUNTER_INIT;
static percid_histogram histogram = PERCID_HISTOGRAM_INIT;

int main(void)
{
    percid_snapshot *snapshot;
    percid_counter_add(&counter, -1);
    percid_histogram_record(&histogram, 3);
    percid_histogram_record_many(&histogram, 3, 2);
    if (percid_histogram_take(&histogram, &snapshot) != 0 || percid_snapshot_count(snapshot) != 3) {
        return 1;
    }
    percid_snapshot_free(snapshot);
    return percid_counter_sum(&counter) == -1 ? 0 : 1;
}
