/*
 * Compiled with the headers of a later version: those for reports may be missing from the
 * library's table. Says how many are, and checks what they answer then.
 */
#include <errno.h>
#include <string.h>

#include <percid.h>

#include "check.h"

int main(void)
{
    percid_report *report = NULL;
    percid_balancer *balancer = NULL;
    percid_region_figures figures;
    percid_on_node node;
    int result;
    CHECK(percid_balancer_create(&balancer, NULL) == 0);
    result = percid_report_create(&report, balancer);
    if (result == 0) {
        CHECK(percid_report_regions(report) == 0);
        CHECK(percid_report_region(report, 0, &figures, sizeof figures) == -ERANGE);
        CHECK(strcmp(percid_skip_reason_name(PERCID_SKIP_REASON_PID_INACTIVE), "pid_inactive") == 0);
        percid_report_free(report);
    } else {
        CHECK(result == -ENOSYS && report == NULL);
        CHECK(percid_report_region(NULL, 0, &figures, sizeof figures) == -ENOSYS);
        CHECK(percid_report_pages(NULL, 0, &node, 1) == 0);
        CHECK(percid_report_skipped(NULL, 0, 1) == 0);
        CHECK(percid_skip_reason_name(PERCID_SKIP_REASON_PID_INACTIVE) == NULL);
        percid_report_free(NULL);
    }
    CHECK(percid_balancer_destroy(balancer) == 0);
    printf("%s\nok\n", percid_interface_address()->version_text);
    return 0;
}
