/* What the checkers must complain about: says whether they run at all. */
#include <stdlib.h>

static char *volatile kept;

int main(void)
{
    kept = malloc(41);
    kept = NULL;
    return 0;
}
