/* Loads a library, closes it, and says whether it stays. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        puts("not loaded");
        return 1;
    }
    dlclose(library);
    puts(dlopen(arguments[1], RTLD_LAZY | RTLD_NOLOAD) != NULL ? "stays" : "gone");
    return 0;
}
