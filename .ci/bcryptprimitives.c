/* The one function that Rust's standard library wants of bcryptprimitives.dll: random bytes. Wine has
 * that library since version 8.15; Debian 12 has an older one. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID data, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
    return SystemFunction036(data, (ULONG)length);
}
