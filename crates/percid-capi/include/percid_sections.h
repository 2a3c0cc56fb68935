/*
 * percid_sections.h: the critical sections of percid_inline.h. Part of percid.h, which includes it.
 *
 * This file is generated from the sections of the library itself (crates/percid/src/critical, which
 * says what each does, and proves it): changes belong there.
 */
#ifndef PERCID_SECTIONS_H
#define PERCID_SECTIONS_H

#ifndef PERCID_H
#error "include percid.h, not this file"
#endif

#if defined(__x86_64__)

#define PERCID_ADD_CLOBBERS "rcx", "rax", "cc", "memory"

#define PERCID_ADD_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %%rax\n\t" \
    "leaq 9b(%%rip), %%rcx\n\t" \
    "movq %%rcx, %%fs:8(%%rax)\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%%rax), %%ecx\n\t" \
    "cmpl 16(%[fast_path]), %%ecx\n\t" \
    "jae %l[percid_slow]\n\t" \
    "incl %%ecx\n\t" \
    "shlq $24, %%rcx\n\t" \
    "addq %[object], %%rcx\n\t" \
    "movq -2(%%rcx), %%rax\n\t" \
    "addq %[n], %%rax\n\t" \
    "movq %%rax, -2(%%rcx)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_ADD_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %%rax\n\t" \
    "leaq 9b(%%rip), %%rcx\n\t" \
    "movq %%rcx, %%fs:8(%%rax)\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%%rax), %%rcx\n\t" \
    "movq 8(%[fast_path]), %%rax\n\t" \
    "movl (%%rax, %%rcx, 4), %%ecx\n\t" \
    "testl %%ecx, %%ecx\n\t" \
    "jz %l[percid_slow]\n\t" \
    "shlq $24, %%rcx\n\t" \
    "addq %[object], %%rcx\n\t" \
    "movq -1(%%rcx), %%rax\n\t" \
    "addq %[n], %%rax\n\t" \
    "movq %%rax, -1(%%rcx)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_ACQUIRE_CLOBBERS "cc", "memory"

#define PERCID_ACQUIRE_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $0, 6(%[index])\n\t" \
    "jne 6f\n\t" \
    "cmpq %[expected], -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "movq %[token], -2(%[index])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_ACQUIRE_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $0, 7(%[index])\n\t" \
    "jne 6f\n\t" \
    "cmpq %[expected], -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "movq %[token], -1(%[index])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_PUSH_CLOBBERS "rcx", "rax", "rdx", "cc", "memory"

#define PERCID_PUSH_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %%rax\n\t" \
    "leaq 9b(%%rip), %%rcx\n\t" \
    "movq %%rcx, %%fs:8(%%rax)\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%%rax), %%ecx\n\t" \
    "cmpl 16(%[fast_path]), %%ecx\n\t" \
    "jae %l[percid_slow]\n\t" \
    "incl %%ecx\n\t" \
    "shlq $24, %%rcx\n\t" \
    "addq %[object], %%rcx\n\t" \
    "movq -2(%%rcx), %%rax\n\t" \
    "leaq -1(%%rax), %%rdx\n\t" \
    "cmpq (%[capacity]), %%rdx\n\t" \
    "jae %l[percid_slow]\n\t" \
    "movq %[item], -2(%%rcx, %%rax, 8)\n\t" \
    "incq %%rax\n\t" \
    "movq %%rax, -2(%%rcx)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_PUSH_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %%rax\n\t" \
    "leaq 9b(%%rip), %%rcx\n\t" \
    "movq %%rcx, %%fs:8(%%rax)\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%%rax), %%rcx\n\t" \
    "movq 8(%[fast_path]), %%rax\n\t" \
    "movl (%%rax, %%rcx, 4), %%ecx\n\t" \
    "testl %%ecx, %%ecx\n\t" \
    "jz %l[percid_slow]\n\t" \
    "shlq $24, %%rcx\n\t" \
    "addq %[object], %%rcx\n\t" \
    "movq -1(%%rcx), %%rax\n\t" \
    "leaq -1(%%rax), %%rdx\n\t" \
    "cmpq (%[capacity]), %%rdx\n\t" \
    "jae %l[percid_slow]\n\t" \
    "movq %[item], -1(%%rcx, %%rax, 8)\n\t" \
    "incq %%rax\n\t" \
    "movq %%rax, -1(%%rcx)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_POP_CLOBBERS "cc", "memory"

#define PERCID_POP_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "movq -2(%[index]), %[work]\n\t" \
    "subq $1, %[work]\n\t" \
    "jle 6f\n\t" \
    "movq -2(%[index], %[work], 8), %[item]\n\t" \
    "movq %[work], -2(%[index])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[work], %k[work]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_POP_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "movq -1(%[index]), %[work]\n\t" \
    "subq $1, %[work]\n\t" \
    "jle 6f\n\t" \
    "movq -1(%[index], %[work], 8), %[item]\n\t" \
    "movq %[work], -1(%[index])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[work], %k[work]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_APPEND_CLOBBERS "rcx", "rax", "rdx", "rsi", "rdi", "r8", "cc", "memory"

#define PERCID_APPEND_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %%rax\n\t" \
    "leaq 9b(%%rip), %%rcx\n\t" \
    "movq %%rcx, %%fs:8(%%rax)\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%%rax), %%ecx\n\t" \
    "cmpl 16(%[fast_path]), %%ecx\n\t" \
    "jae %l[percid_slow]\n\t" \
    "incl %%ecx\n\t" \
    "shlq $24, %%rcx\n\t" \
    "addq %[object], %%rcx\n\t" \
    "movq -2(%%rcx), %%rax\n\t" \
    "movq %%rax, %%rsi\n\t" \
    "subq 62(%%rcx), %%rsi\n\t" \
    "addq 40(%[request]), %%rsi\n\t" \
    "cmpq 48(%[request]), %%rsi\n\t" \
    "ja %l[percid_slow]\n\t" \
    "movq %%rax, %%rdx\n\t" \
    "andq 56(%[request]), %%rdx\n\t" \
    "movq 190(%%rcx, %%rdx), %%rdi\n\t" \
    "andq $-65536, %%rdi\n\t" \
    "movq %%rdi, %%rsi\n\t" \
    "orq 24(%[request]), %%rsi\n\t" \
    "movq %%rsi, 190(%%rcx, %%rdx)\n\t" \
    "movq (%[request]), %%r8\n\t" \
    "7:\n\t" \
    "addq $8, %%rax\n\t" \
    "movq %%rax, %%rdx\n\t" \
    "andq 56(%[request]), %%rdx\n\t" \
    "cmpq 8(%[request]), %%r8\n\t" \
    "je 8f\n\t" \
    "movq (%%r8), %%rsi\n\t" \
    "movq %%rsi, 190(%%rcx, %%rdx)\n\t" \
    "addq $8, %%r8\n\t" \
    "jmp 7b\n\t" \
    "8:\n\t" \
    "movq 16(%[request]), %%rsi\n\t" \
    "movq %%rsi, 190(%%rcx, %%rdx)\n\t" \
    "movq -2(%%rcx), %%rax\n\t" \
    "addq 32(%[request]), %%rax\n\t" \
    "movq %%rax, %%rdx\n\t" \
    "andq 56(%[request]), %%rdx\n\t" \
    "addq $65536, %%rdi\n\t" \
    "movq %%rdi, 190(%%rcx, %%rdx)\n\t" \
    "movq %%rax, -2(%%rcx)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_APPEND_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %%rax\n\t" \
    "leaq 9b(%%rip), %%rcx\n\t" \
    "movq %%rcx, %%fs:8(%%rax)\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%%rax), %%rcx\n\t" \
    "movq 8(%[fast_path]), %%rax\n\t" \
    "movl (%%rax, %%rcx, 4), %%ecx\n\t" \
    "testl %%ecx, %%ecx\n\t" \
    "jz %l[percid_slow]\n\t" \
    "shlq $24, %%rcx\n\t" \
    "addq %[object], %%rcx\n\t" \
    "movq -1(%%rcx), %%rax\n\t" \
    "movq %%rax, %%rsi\n\t" \
    "subq 63(%%rcx), %%rsi\n\t" \
    "addq 40(%[request]), %%rsi\n\t" \
    "cmpq 48(%[request]), %%rsi\n\t" \
    "ja %l[percid_slow]\n\t" \
    "movq %%rax, %%rdx\n\t" \
    "andq 56(%[request]), %%rdx\n\t" \
    "movq 191(%%rcx, %%rdx), %%rdi\n\t" \
    "andq $-65536, %%rdi\n\t" \
    "movq %%rdi, %%rsi\n\t" \
    "orq 24(%[request]), %%rsi\n\t" \
    "movq %%rsi, 191(%%rcx, %%rdx)\n\t" \
    "movq (%[request]), %%r8\n\t" \
    "7:\n\t" \
    "addq $8, %%rax\n\t" \
    "movq %%rax, %%rdx\n\t" \
    "andq 56(%[request]), %%rdx\n\t" \
    "cmpq 8(%[request]), %%r8\n\t" \
    "je 8f\n\t" \
    "movq (%%r8), %%rsi\n\t" \
    "movq %%rsi, 191(%%rcx, %%rdx)\n\t" \
    "addq $8, %%r8\n\t" \
    "jmp 7b\n\t" \
    "8:\n\t" \
    "movq 16(%[request]), %%rsi\n\t" \
    "movq %%rsi, 191(%%rcx, %%rdx)\n\t" \
    "movq -1(%%rcx), %%rax\n\t" \
    "addq 32(%[request]), %%rax\n\t" \
    "movq %%rax, %%rdx\n\t" \
    "andq 56(%[request]), %%rdx\n\t" \
    "addq $65536, %%rdi\n\t" \
    "movq %%rdi, 191(%%rcx, %%rdx)\n\t" \
    "movq %%rax, -1(%%rcx)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_ADD_WORD_CLOBBERS "cc", "memory"

#define PERCID_ADD_WORD_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -2(%[work]), %[sum]\n\t" \
    "addq %[n], %[sum]\n\t" \
    "movq %[sum], -2(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_ADD_WORD_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -1(%[work]), %[sum]\n\t" \
    "addq %[n], %[sum]\n\t" \
    "movq %[sum], -1(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_SWAP_CLOBBERS "cc", "memory"

#define PERCID_SWAP_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -2(%[work]), %[seen]\n\t" \
    "movq %[desired], -2(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_SWAP_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -1(%[work]), %[seen]\n\t" \
    "movq %[desired], -1(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_STORE_IF_CLOBBERS "cc", "memory"

#define PERCID_STORE_IF_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -2(%[work]), %[seen]\n\t" \
    "cmpq %[expected], %[seen]\n\t" \
    "jne 5f\n\t" \
    "movq %[desired], -2(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_STORE_IF_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -1(%[work]), %[seen]\n\t" \
    "cmpq %[expected], %[seen]\n\t" \
    "jne 5f\n\t" \
    "movq %[desired], -1(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_STORE_BOTH_IF_CLOBBERS "cc", "memory"

#define PERCID_STORE_BOTH_IF_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -2(%[work]), %[seen]\n\t" \
    "cmpq %[expected], %[seen]\n\t" \
    "jne 5f\n\t" \
    "movq %[value], -2(%[index], %[first])\n\t" \
    "movq %[desired], -2(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_STORE_BOTH_IF_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -1(%[work]), %[seen]\n\t" \
    "cmpq %[expected], %[seen]\n\t" \
    "jne 5f\n\t" \
    "movq %[value], -1(%[index], %[first])\n\t" \
    "movq %[desired], -1(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_STORE_IF_BOTH_CLOBBERS "cc", "memory"

#define PERCID_STORE_IF_BOTH_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -2(%[work]), %[seen]\n\t" \
    "movq -2(%[index], %[second]), %[other]\n\t" \
    "cmpq %[expected], %[seen]\n\t" \
    "jne 5f\n\t" \
    "cmpq %[value], %[other]\n\t" \
    "jne 5f\n\t" \
    "movq %[desired], -2(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_STORE_IF_BOTH_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -1(%[work]), %[seen]\n\t" \
    "movq -1(%[index], %[second]), %[other]\n\t" \
    "cmpq %[expected], %[seen]\n\t" \
    "jne 5f\n\t" \
    "cmpq %[value], %[other]\n\t" \
    "jne 5f\n\t" \
    "movq %[desired], -1(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_COPY_THEN_STORE_IF_CLOBBERS "cc", "memory"

#define PERCID_COPY_THEN_STORE_IF_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -2(%[work]), %[seen]\n\t" \
    "cmpq 32(%[request]), %[seen]\n\t" \
    "jne 5f\n\t" \
    "movq (%[request]), %[end]\n\t" \
    "movq 24(%[request]), %[to]\n\t" \
    "addq %[index], %[to]\n\t" \
    "movq 8(%[request]), %[position]\n\t" \
    "7:\n\t" \
    "cmpq 16(%[request]), %[position]\n\t" \
    "je 8f\n\t" \
    "movq (%[end], %[position]), %[value]\n\t" \
    "movq %[value], -2(%[to], %[position])\n\t" \
    "addq $8, %[position]\n\t" \
    "jmp 7b\n\t" \
    "8:\n\t" \
    "testq %[position], %[position]\n\t" \
    "je 7f\n\t" \
    "movzbl (%[end], %[position]), %k[value]\n\t" \
    "movb %b[value], -2(%[to], %[position])\n\t" \
    "incq %[position]\n\t" \
    "jmp 8b\n\t" \
    "7:\n\t" \
    "movq 40(%[request]), %[value]\n\t" \
    "movq %[value], -2(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_COPY_THEN_STORE_IF_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -1(%[work]), %[seen]\n\t" \
    "cmpq 32(%[request]), %[seen]\n\t" \
    "jne 5f\n\t" \
    "movq (%[request]), %[end]\n\t" \
    "movq 24(%[request]), %[to]\n\t" \
    "addq %[index], %[to]\n\t" \
    "movq 8(%[request]), %[position]\n\t" \
    "7:\n\t" \
    "cmpq 16(%[request]), %[position]\n\t" \
    "je 8f\n\t" \
    "movq (%[end], %[position]), %[value]\n\t" \
    "movq %[value], -1(%[to], %[position])\n\t" \
    "addq $8, %[position]\n\t" \
    "jmp 7b\n\t" \
    "8:\n\t" \
    "testq %[position], %[position]\n\t" \
    "je 7f\n\t" \
    "movzbl (%[end], %[position]), %k[value]\n\t" \
    "movb %b[value], -1(%[to], %[position])\n\t" \
    "incq %[position]\n\t" \
    "jmp 8b\n\t" \
    "7:\n\t" \
    "movq 40(%[request]), %[value]\n\t" \
    "movq %[value], -1(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_PUSH_LINK_CLOBBERS "cc", "memory"

#define PERCID_PUSH_LINK_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -2(%[work]), %[seen]\n\t" \
    "movq %[seen], (%[link])\n\t" \
    "movq %[item], -2(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_PUSH_LINK_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -1(%[work]), %[seen]\n\t" \
    "movq %[seen], (%[link])\n\t" \
    "movq %[item], -1(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_POP_LINK_CLOBBERS "cc", "memory"

#define PERCID_POP_LINK_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movl %%fs:24(%[work]), %k[index]\n\t" \
    "cmpl 16(%[fast_path]), %k[index]\n\t" \
    "jae 6f\n\t" \
    "incl %k[index]\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -2(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -2(%[work]), %[seen]\n\t" \
    "testq %[seen], %[seen]\n\t" \
    "jz 5f\n\t" \
    "movq (%[seen], %[next]), %[other]\n\t" \
    "movq %[other], -2(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#define PERCID_POP_LINK_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".long 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "movq (%[fast_path]), %[work]\n\t" \
    "leaq 9b(%%rip), %[index]\n\t" \
    "movq %[index], %%fs:8(%[work])\n\t" \
    "2:\n\t" \
    "movslq %%fs:4(%[work]), %[index]\n\t" \
    "movq 8(%[fast_path]), %[work]\n\t" \
    "movl (%[work], %[index], 4), %k[index]\n\t" \
    "testl %k[index], %k[index]\n\t" \
    "jz 6f\n\t" \
    "shlq $24, %[index]\n\t" \
    "addq %[object], %[index]\n\t" \
    "cmpq $1, -1(%[index])\n\t" \
    "jne 6f\n\t" \
    "leaq (%[index], %[at]), %[work]\n\t" \
    "movq -1(%[work]), %[seen]\n\t" \
    "testq %[seen], %[seen]\n\t" \
    "jz 5f\n\t" \
    "movq (%[seen], %[next]), %[other]\n\t" \
    "movq %[other], -1(%[work])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".byte 0x0f, 0xb9, 0x3d\n\t" \
    ".long 0x53053053\n\t" \
    "4:\n\t" \
    "jmp 6f\n\t" \
    "6:\n\t" \
    "xorl %k[index], %k[index]\n\t" \
    "jmp 5f\n\t" \
    ".popsection\n\t" \
    "5:"

#elif defined(__aarch64__)

#define PERCID_ADD_CLOBBERS "x9", "x10", "x11", "x16", "x17", "cc", "memory"

#define PERCID_ADD_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr x10, [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, x10\n\t" \
    "adrp x10, 9b\n\t" \
    "add x10, x10, :lo12:9b\n\t" \
    "str x10, [x9, #8]\n\t" \
    "2:\n\t" \
    "ldr w10, [x9, #24]\n\t" \
    "ldr w11, [%[fast_path], #16]\n\t" \
    "cmp w10, w11\n\t" \
    "b.hs %l[percid_slow]\n\t" \
    "add w10, w10, #1\n\t" \
    "add x10, %[object], x10, lsl #24\n\t" \
    "ldr x11, [x10]\n\t" \
    "add x11, x11, %[n]\n\t" \
    "str x11, [x10]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_ADD_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr x10, [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, x10\n\t" \
    "adrp x10, 9b\n\t" \
    "add x10, x10, :lo12:9b\n\t" \
    "str x10, [x9, #8]\n\t" \
    "2:\n\t" \
    "ldrsw x10, [x9, #4]\n\t" \
    "ldr x11, [%[fast_path], #8]\n\t" \
    "ldr w10, [x11, x10, lsl #2]\n\t" \
    "cbz w10, %l[percid_slow]\n\t" \
    "add x10, %[object], x10, lsl #24\n\t" \
    "ldr x11, [x10]\n\t" \
    "add x11, x11, %[n]\n\t" \
    "str x11, [x10]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_ACQUIRE_CLOBBERS "x9", "x16", "x17", "cc", "memory"

#define PERCID_ACQUIRE_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr %[index], [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, %[index]\n\t" \
    "adrp %[index], 9b\n\t" \
    "add %[index], %[index], :lo12:9b\n\t" \
    "str %[index], [x9, #8]\n\t" \
    "2:\n\t" \
    "ldr %w[index], [x9, #24]\n\t" \
    "ldr %w[work], [%[fast_path], #16]\n\t" \
    "cmp %w[index], %w[work]\n\t" \
    "b.hs 6f\n\t" \
    "add %w[index], %w[index], #1\n\t" \
    "add %[index], %[object], %[index], lsl #24\n\t" \
    "add %[work], %[index], #8\n\t" \
    "ldar %[work], [%[work]]\n\t" \
    "cbnz %[work], 6f\n\t" \
    "ldar %[work], [%[index]]\n\t" \
    "cmp %[work], %[expected]\n\t" \
    "b.ne 6f\n\t" \
    "str %[token], [%[index]]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b 6f\n\t" \
    ".popsection\n\t" \
    "b 5f\n\t" \
    "6:\n\t" \
    "mov %[index], #0\n\t" \
    "5:"

#define PERCID_ACQUIRE_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr %[index], [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, %[index]\n\t" \
    "adrp %[index], 9b\n\t" \
    "add %[index], %[index], :lo12:9b\n\t" \
    "str %[index], [x9, #8]\n\t" \
    "2:\n\t" \
    "ldrsw %[index], [x9, #4]\n\t" \
    "ldr %[work], [%[fast_path], #8]\n\t" \
    "ldr %w[index], [%[work], %[index], lsl #2]\n\t" \
    "cbz %w[index], 6f\n\t" \
    "add %[index], %[object], %[index], lsl #24\n\t" \
    "add %[work], %[index], #8\n\t" \
    "ldar %[work], [%[work]]\n\t" \
    "cbnz %[work], 6f\n\t" \
    "ldar %[work], [%[index]]\n\t" \
    "cmp %[work], %[expected]\n\t" \
    "b.ne 6f\n\t" \
    "str %[token], [%[index]]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b 6f\n\t" \
    ".popsection\n\t" \
    "b 5f\n\t" \
    "6:\n\t" \
    "mov %[index], #0\n\t" \
    "5:"

#define PERCID_PUSH_CLOBBERS "x9", "x10", "x11", "x12", "x16", "x17", "cc", "memory"

#define PERCID_PUSH_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr x10, [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, x10\n\t" \
    "adrp x10, 9b\n\t" \
    "add x10, x10, :lo12:9b\n\t" \
    "str x10, [x9, #8]\n\t" \
    "2:\n\t" \
    "ldr w10, [x9, #24]\n\t" \
    "ldr w11, [%[fast_path], #16]\n\t" \
    "cmp w10, w11\n\t" \
    "b.hs %l[percid_slow]\n\t" \
    "add w10, w10, #1\n\t" \
    "add x10, %[object], x10, lsl #24\n\t" \
    "ldr x11, [x10]\n\t" \
    "sub x12, x11, #1\n\t" \
    "cmp x12, %[capacity]\n\t" \
    "b.hs %l[percid_slow]\n\t" \
    "str %[item], [x10, x11, lsl #3]\n\t" \
    "add x11, x11, #1\n\t" \
    "str x11, [x10]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_PUSH_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr x10, [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, x10\n\t" \
    "adrp x10, 9b\n\t" \
    "add x10, x10, :lo12:9b\n\t" \
    "str x10, [x9, #8]\n\t" \
    "2:\n\t" \
    "ldrsw x10, [x9, #4]\n\t" \
    "ldr x11, [%[fast_path], #8]\n\t" \
    "ldr w10, [x11, x10, lsl #2]\n\t" \
    "cbz w10, %l[percid_slow]\n\t" \
    "add x10, %[object], x10, lsl #24\n\t" \
    "ldr x11, [x10]\n\t" \
    "sub x12, x11, #1\n\t" \
    "cmp x12, %[capacity]\n\t" \
    "b.hs %l[percid_slow]\n\t" \
    "str %[item], [x10, x11, lsl #3]\n\t" \
    "add x11, x11, #1\n\t" \
    "str x11, [x10]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_POP_CLOBBERS "x9", "x16", "x17", "cc", "memory"

#define PERCID_POP_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr %[index], [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, %[index]\n\t" \
    "adrp %[index], 9b\n\t" \
    "add %[index], %[index], :lo12:9b\n\t" \
    "str %[index], [x9, #8]\n\t" \
    "2:\n\t" \
    "ldr %w[index], [x9, #24]\n\t" \
    "ldr %w[work], [%[fast_path], #16]\n\t" \
    "cmp %w[index], %w[work]\n\t" \
    "b.hs 6f\n\t" \
    "add %w[index], %w[index], #1\n\t" \
    "add %[index], %[object], %[index], lsl #24\n\t" \
    "ldr %[work], [%[index]]\n\t" \
    "subs %[work], %[work], #1\n\t" \
    "b.le 6f\n\t" \
    "ldr %[item], [%[index], %[work], lsl #3]\n\t" \
    "str %[work], [%[index]]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b 6f\n\t" \
    ".popsection\n\t" \
    "b 5f\n\t" \
    "6:\n\t" \
    "mov %[work], #0\n\t" \
    "5:"

#define PERCID_POP_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr %[index], [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, %[index]\n\t" \
    "adrp %[index], 9b\n\t" \
    "add %[index], %[index], :lo12:9b\n\t" \
    "str %[index], [x9, #8]\n\t" \
    "2:\n\t" \
    "ldrsw %[index], [x9, #4]\n\t" \
    "ldr %[work], [%[fast_path], #8]\n\t" \
    "ldr %w[index], [%[work], %[index], lsl #2]\n\t" \
    "cbz %w[index], 6f\n\t" \
    "add %[index], %[object], %[index], lsl #24\n\t" \
    "ldr %[work], [%[index]]\n\t" \
    "subs %[work], %[work], #1\n\t" \
    "b.le 6f\n\t" \
    "ldr %[item], [%[index], %[work], lsl #3]\n\t" \
    "str %[work], [%[index]]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b 6f\n\t" \
    ".popsection\n\t" \
    "b 5f\n\t" \
    "6:\n\t" \
    "mov %[work], #0\n\t" \
    "5:"

#define PERCID_APPEND_CLOBBERS "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x8", "x7", "x6", "x16", "x17", "cc", "memory"

#define PERCID_APPEND_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr x10, [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, x10\n\t" \
    "adrp x10, 9b\n\t" \
    "add x10, x10, :lo12:9b\n\t" \
    "str x10, [x9, #8]\n\t" \
    "2:\n\t" \
    "ldr w10, [x9, #24]\n\t" \
    "ldr w11, [%[fast_path], #16]\n\t" \
    "cmp w10, w11\n\t" \
    "b.hs %l[percid_slow]\n\t" \
    "add w10, w10, #1\n\t" \
    "add x10, %[object], x10, lsl #24\n\t" \
    "ldr x11, [x10, #0]\n\t" \
    "ldr x13, [x10, #64]\n\t" \
    "sub x13, x11, x13\n\t" \
    "ldr x12, [%[request], #40]\n\t" \
    "add x13, x13, x12\n\t" \
    "ldr x12, [%[request], #48]\n\t" \
    "cmp x13, x12\n\t" \
    "b.hi %l[percid_slow]\n\t" \
    "dmb ishst\n\t" \
    "ldr x8, [%[request], #56]\n\t" \
    "add x7, x10, #192\n\t" \
    "and x12, x11, x8\n\t" \
    "ldr x14, [x7, x12]\n\t" \
    "and x14, x14, #-65536\n\t" \
    "ldr x13, [%[request], #24]\n\t" \
    "orr x13, x14, x13\n\t" \
    "str x13, [x7, x12]\n\t" \
    "ldr x15, [%[request], #0]\n\t" \
    "ldr x6, [%[request], #8]\n\t" \
    "7:\n\t" \
    "add x11, x11, #8\n\t" \
    "and x12, x11, x8\n\t" \
    "cmp x15, x6\n\t" \
    "b.eq 8f\n\t" \
    "ldr x13, [x15], #8\n\t" \
    "str x13, [x7, x12]\n\t" \
    "b 7b\n\t" \
    "8:\n\t" \
    "ldr x13, [%[request], #16]\n\t" \
    "str x13, [x7, x12]\n\t" \
    "ldr x11, [x10, #0]\n\t" \
    "ldr x13, [%[request], #32]\n\t" \
    "add x11, x11, x13\n\t" \
    "and x12, x11, x8\n\t" \
    "add x14, x14, #16, lsl #12\n\t" \
    "str x14, [x7, x12]\n\t" \
    "stlr x11, [x10]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b %l[percid_slow]\n\t" \
    ".popsection"

#define PERCID_APPEND_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".xword 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ldr x10, [%[fast_path]]\n\t" \
    "mrs x9, tpidr_el0\n\t" \
    "add x9, x9, x10\n\t" \
    "adrp x10, 9b\n\t" \
    "add x10, x10, :lo12:9b\n\t" \
    "str x10, [x9, #8]\n\t" \
    "2:\n\t" \
    "ldrsw x10, [x9, #4]\n\t" \
    "ldr x11, [%[fast_path], #8]\n\t" \
    "ldr w10, [x11, x10, lsl #2]\n\t" \
    "cbz w10, %l[percid_slow]\n\t" \
    "add x10, %[object], x10, lsl #24\n\t" \
    "ldr x11, [x10, #0]\n\t" \
    "ldr x13, [x10, #64]\n\t" \
    "sub x13, x11, x13\n\t" \
    "ldr x12, [%[request], #40]\n\t" \
    "add x13, x13, x12\n\t" \
    "ldr x12, [%[request], #48]\n\t" \
    "cmp x13, x12\n\t" \
    "b.hi %l[percid_slow]\n\t" \
    "dmb ishst\n\t" \
    "ldr x8, [%[request], #56]\n\t" \
    "add x7, x10, #192\n\t" \
    "and x12, x11, x8\n\t" \
    "ldr x14, [x7, x12]\n\t" \
    "and x14, x14, #-65536\n\t" \
    "ldr x13, [%[request], #24]\n\t" \
    "orr x13, x14, x13\n\t" \
    "str x13, [x7, x12]\n\t" \
    "ldr x15, [%[request], #0]\n\t" \
    "ldr x6, [%[request], #8]\n\t" \
    "7:\n\t" \
    "add x11, x11, #8\n\t" \
    "and x12, x11, x8\n\t" \
    "cmp x15, x6\n\t" \
    "b.eq 8f\n\t" \
    "ldr x13, [x15], #8\n\t" \
    "str x13, [x7, x12]\n\t" \
    "b 7b\n\t" \
    "8:\n\t" \
    "ldr x13, [%[request], #16]\n\t" \
    "str x13, [x7, x12]\n\t" \
    "ldr x11, [x10, #0]\n\t" \
    "ldr x13, [%[request], #32]\n\t" \
    "add x11, x11, x13\n\t" \
    "and x12, x11, x8\n\t" \
    "add x14, x14, #16, lsl #12\n\t" \
    "str x14, [x7, x12]\n\t" \
    "stlr x11, [x10]\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".inst 0xd428bc00\n\t" \
    "4:\n\t" \
    "b %l[percid_slow]\n\t" \
    ".popsection"

#elif defined(__riscv)

#define PERCID_ADD_CLOBBERS "t0", "t1", "t2", "cc", "memory"

#define PERCID_ADD_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld t1, 0(%[fast_path])\n\t" \
    "add t0, t1, tp\n\t" \
    "lla t1, 9b\n\t" \
    "sd t1, 8(t0)\n\t" \
    "2:\n\t" \
    "lwu t1, 24(t0)\n\t" \
    "lwu t2, 16(%[fast_path])\n\t" \
    "bgeu t1, t2, %l[percid_slow]\n\t" \
    "addi t1, t1, 1\n\t" \
    "slli t1, t1, 24\n\t" \
    "add t1, t1, %[object]\n\t" \
    "ld t2, 0(t1)\n\t" \
    "add t2, t2, %[n]\n\t" \
    "sd t2, 0(t1)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump %l[percid_slow], t1\n\t" \
    ".option pop\n\t" \
    ".popsection"

#define PERCID_ADD_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld t1, 0(%[fast_path])\n\t" \
    "add t0, t1, tp\n\t" \
    "lla t1, 9b\n\t" \
    "sd t1, 8(t0)\n\t" \
    "2:\n\t" \
    "lw t1, 4(t0)\n\t" \
    "ld t2, 8(%[fast_path])\n\t" \
    "slli t1, t1, 2\n\t" \
    "add t1, t1, t2\n\t" \
    "lwu t1, 0(t1)\n\t" \
    "beqz t1, %l[percid_slow]\n\t" \
    "slli t1, t1, 24\n\t" \
    "add t1, t1, %[object]\n\t" \
    "ld t2, 0(t1)\n\t" \
    "add t2, t2, %[n]\n\t" \
    "sd t2, 0(t1)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump %l[percid_slow], t1\n\t" \
    ".option pop\n\t" \
    ".popsection"

#define PERCID_ACQUIRE_CLOBBERS "t0", "cc", "memory"

#define PERCID_ACQUIRE_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld %[index], 0(%[fast_path])\n\t" \
    "add t0, %[index], tp\n\t" \
    "lla %[index], 9b\n\t" \
    "sd %[index], 8(t0)\n\t" \
    "2:\n\t" \
    "lwu %[index], 24(t0)\n\t" \
    "lwu %[work], 16(%[fast_path])\n\t" \
    "bgeu %[index], %[work], 6f\n\t" \
    "addi %[index], %[index], 1\n\t" \
    "slli %[index], %[index], 24\n\t" \
    "add %[index], %[index], %[object]\n\t" \
    "ld %[work], 8(%[index])\n\t" \
    "bnez %[work], 6f\n\t" \
    "fence r, rw\n\t" \
    "ld %[work], 0(%[index])\n\t" \
    "bne %[work], %[expected], 6f\n\t" \
    "fence r, rw\n\t" \
    "sd %[token], 0(%[index])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump 6f, %[index]\n\t" \
    ".option pop\n\t" \
    ".popsection\n\t" \
    "j 5f\n\t" \
    "6:\n\t" \
    "li %[index], 0\n\t" \
    "5:"

#define PERCID_ACQUIRE_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld %[index], 0(%[fast_path])\n\t" \
    "add t0, %[index], tp\n\t" \
    "lla %[index], 9b\n\t" \
    "sd %[index], 8(t0)\n\t" \
    "2:\n\t" \
    "lw %[index], 4(t0)\n\t" \
    "ld %[work], 8(%[fast_path])\n\t" \
    "slli %[index], %[index], 2\n\t" \
    "add %[index], %[index], %[work]\n\t" \
    "lwu %[index], 0(%[index])\n\t" \
    "beqz %[index], 6f\n\t" \
    "slli %[index], %[index], 24\n\t" \
    "add %[index], %[index], %[object]\n\t" \
    "ld %[work], 8(%[index])\n\t" \
    "bnez %[work], 6f\n\t" \
    "fence r, rw\n\t" \
    "ld %[work], 0(%[index])\n\t" \
    "bne %[work], %[expected], 6f\n\t" \
    "fence r, rw\n\t" \
    "sd %[token], 0(%[index])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump 6f, %[index]\n\t" \
    ".option pop\n\t" \
    ".popsection\n\t" \
    "j 5f\n\t" \
    "6:\n\t" \
    "li %[index], 0\n\t" \
    "5:"

#define PERCID_PUSH_CLOBBERS "t0", "t1", "t2", "t3", "cc", "memory"

#define PERCID_PUSH_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld t1, 0(%[fast_path])\n\t" \
    "add t0, t1, tp\n\t" \
    "lla t1, 9b\n\t" \
    "sd t1, 8(t0)\n\t" \
    "2:\n\t" \
    "lwu t1, 24(t0)\n\t" \
    "lwu t2, 16(%[fast_path])\n\t" \
    "bgeu t1, t2, %l[percid_slow]\n\t" \
    "addi t1, t1, 1\n\t" \
    "slli t1, t1, 24\n\t" \
    "add t1, t1, %[object]\n\t" \
    "ld t2, 0(t1)\n\t" \
    "addi t3, t2, -1\n\t" \
    "bgeu t3, %[capacity], %l[percid_slow]\n\t" \
    "slli t3, t2, 3\n\t" \
    "add t3, t3, t1\n\t" \
    "sd %[item], 0(t3)\n\t" \
    "addi t2, t2, 1\n\t" \
    "sd t2, 0(t1)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump %l[percid_slow], t1\n\t" \
    ".option pop\n\t" \
    ".popsection"

#define PERCID_PUSH_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld t1, 0(%[fast_path])\n\t" \
    "add t0, t1, tp\n\t" \
    "lla t1, 9b\n\t" \
    "sd t1, 8(t0)\n\t" \
    "2:\n\t" \
    "lw t1, 4(t0)\n\t" \
    "ld t2, 8(%[fast_path])\n\t" \
    "slli t1, t1, 2\n\t" \
    "add t1, t1, t2\n\t" \
    "lwu t1, 0(t1)\n\t" \
    "beqz t1, %l[percid_slow]\n\t" \
    "slli t1, t1, 24\n\t" \
    "add t1, t1, %[object]\n\t" \
    "ld t2, 0(t1)\n\t" \
    "addi t3, t2, -1\n\t" \
    "bgeu t3, %[capacity], %l[percid_slow]\n\t" \
    "slli t3, t2, 3\n\t" \
    "add t3, t3, t1\n\t" \
    "sd %[item], 0(t3)\n\t" \
    "addi t2, t2, 1\n\t" \
    "sd t2, 0(t1)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump %l[percid_slow], t1\n\t" \
    ".option pop\n\t" \
    ".popsection"

#define PERCID_POP_CLOBBERS "t0", "cc", "memory"

#define PERCID_POP_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld %[index], 0(%[fast_path])\n\t" \
    "add t0, %[index], tp\n\t" \
    "lla %[index], 9b\n\t" \
    "sd %[index], 8(t0)\n\t" \
    "2:\n\t" \
    "lwu %[index], 24(t0)\n\t" \
    "lwu %[work], 16(%[fast_path])\n\t" \
    "bgeu %[index], %[work], 6f\n\t" \
    "addi %[index], %[index], 1\n\t" \
    "slli %[index], %[index], 24\n\t" \
    "add %[index], %[index], %[object]\n\t" \
    "ld %[work], 0(%[index])\n\t" \
    "li %[item], 1\n\t" \
    "ble %[work], %[item], 6f\n\t" \
    "addi %[work], %[work], -1\n\t" \
    "slli %[item], %[work], 3\n\t" \
    "add %[item], %[item], %[index]\n\t" \
    "ld %[item], 0(%[item])\n\t" \
    "sd %[work], 0(%[index])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump 6f, %[index]\n\t" \
    ".option pop\n\t" \
    ".popsection\n\t" \
    "j 5f\n\t" \
    "6:\n\t" \
    "li %[work], 0\n\t" \
    "5:"

#define PERCID_POP_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld %[index], 0(%[fast_path])\n\t" \
    "add t0, %[index], tp\n\t" \
    "lla %[index], 9b\n\t" \
    "sd %[index], 8(t0)\n\t" \
    "2:\n\t" \
    "lw %[index], 4(t0)\n\t" \
    "ld %[work], 8(%[fast_path])\n\t" \
    "slli %[index], %[index], 2\n\t" \
    "add %[index], %[index], %[work]\n\t" \
    "lwu %[index], 0(%[index])\n\t" \
    "beqz %[index], 6f\n\t" \
    "slli %[index], %[index], 24\n\t" \
    "add %[index], %[index], %[object]\n\t" \
    "ld %[work], 0(%[index])\n\t" \
    "li %[item], 1\n\t" \
    "ble %[work], %[item], 6f\n\t" \
    "addi %[work], %[work], -1\n\t" \
    "slli %[item], %[work], 3\n\t" \
    "add %[item], %[item], %[index]\n\t" \
    "ld %[item], 0(%[item])\n\t" \
    "sd %[work], 0(%[index])\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump 6f, %[index]\n\t" \
    ".option pop\n\t" \
    ".popsection\n\t" \
    "j 5f\n\t" \
    "6:\n\t" \
    "li %[work], 0\n\t" \
    "5:"

#define PERCID_APPEND_CLOBBERS "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a7", "a6", "a5", "a4", "a3", "cc", "memory"

#define PERCID_APPEND_KERNEL \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld t1, 0(%[fast_path])\n\t" \
    "add t0, t1, tp\n\t" \
    "lla t1, 9b\n\t" \
    "sd t1, 8(t0)\n\t" \
    "2:\n\t" \
    "lwu t1, 24(t0)\n\t" \
    "lwu t2, 16(%[fast_path])\n\t" \
    "bgeu t1, t2, %l[percid_slow]\n\t" \
    "addi t1, t1, 1\n\t" \
    "slli t1, t1, 24\n\t" \
    "add t1, t1, %[object]\n\t" \
    "ld t2, 0(t1)\n\t" \
    "ld t4, 64(t1)\n\t" \
    "sub t4, t2, t4\n\t" \
    "ld t3, 40(%[request])\n\t" \
    "add t4, t4, t3\n\t" \
    "ld t3, 48(%[request])\n\t" \
    "bgtu t4, t3, %l[percid_slow]\n\t" \
    "fence w, w\n\t" \
    "ld a7, 56(%[request])\n\t" \
    "addi a6, t1, 192\n\t" \
    "and t3, t2, a7\n\t" \
    "add t3, t3, a6\n\t" \
    "ld t5, 0(t3)\n\t" \
    "srli t5, t5, 16\n\t" \
    "slli t5, t5, 16\n\t" \
    "ld t4, 24(%[request])\n\t" \
    "or t4, t4, t5\n\t" \
    "sd t4, 0(t3)\n\t" \
    "ld t6, 0(%[request])\n\t" \
    "ld a5, 8(%[request])\n\t" \
    "slli a3, t6, 3\n\t" \
    "7:\n\t" \
    "addi t2, t2, 8\n\t" \
    "and t3, t2, a7\n\t" \
    "add t3, t3, a6\n\t" \
    "beq t6, a5, 8f\n\t" \
    "andi t4, t6, -8\n\t" \
    "ld t4, 0(t4)\n\t" \
    "addi t6, t6, 7\n\t" \
    "andi a4, t6, -8\n\t" \
    "ld a4, 0(a4)\n\t" \
    "addi t6, t6, 1\n\t" \
    "srl t4, t4, a3\n\t" \
    "slli a4, a4, 1\n\t" \
    "not a3, a3\n\t" \
    "sll a4, a4, a3\n\t" \
    "not a3, a3\n\t" \
    "or t4, t4, a4\n\t" \
    "sd t4, 0(t3)\n\t" \
    "j 7b\n\t" \
    "8:\n\t" \
    "ld t4, 16(%[request])\n\t" \
    "sd t4, 0(t3)\n\t" \
    "ld t2, 0(t1)\n\t" \
    "ld t4, 32(%[request])\n\t" \
    "add t2, t2, t4\n\t" \
    "and t3, t2, a7\n\t" \
    "add t3, t3, a6\n\t" \
    "lui t4, 16\n\t" \
    "add t5, t5, t4\n\t" \
    "sd t5, 0(t3)\n\t" \
    "fence rw, w\n\t" \
    "sd t2, 0(t1)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump %l[percid_slow], t1\n\t" \
    ".option pop\n\t" \
    ".popsection"

#define PERCID_APPEND_TABLE \
    ".pushsection __rseq_cs, \"aw?\", @progbits\n\t" \
    ".balign 32\n\t" \
    "9:\n\t" \
    ".word 0, 0\n\t" \
    ".quad 2f, 3f - 2f, 4f\n\t" \
    ".popsection\n\t" \
    "ld t1, 0(%[fast_path])\n\t" \
    "add t0, t1, tp\n\t" \
    "lla t1, 9b\n\t" \
    "sd t1, 8(t0)\n\t" \
    "2:\n\t" \
    "lw t1, 4(t0)\n\t" \
    "ld t2, 8(%[fast_path])\n\t" \
    "slli t1, t1, 2\n\t" \
    "add t1, t1, t2\n\t" \
    "lwu t1, 0(t1)\n\t" \
    "beqz t1, %l[percid_slow]\n\t" \
    "slli t1, t1, 24\n\t" \
    "add t1, t1, %[object]\n\t" \
    "ld t2, 0(t1)\n\t" \
    "ld t4, 64(t1)\n\t" \
    "sub t4, t2, t4\n\t" \
    "ld t3, 40(%[request])\n\t" \
    "add t4, t4, t3\n\t" \
    "ld t3, 48(%[request])\n\t" \
    "bgtu t4, t3, %l[percid_slow]\n\t" \
    "fence w, w\n\t" \
    "ld a7, 56(%[request])\n\t" \
    "addi a6, t1, 192\n\t" \
    "and t3, t2, a7\n\t" \
    "add t3, t3, a6\n\t" \
    "ld t5, 0(t3)\n\t" \
    "srli t5, t5, 16\n\t" \
    "slli t5, t5, 16\n\t" \
    "ld t4, 24(%[request])\n\t" \
    "or t4, t4, t5\n\t" \
    "sd t4, 0(t3)\n\t" \
    "ld t6, 0(%[request])\n\t" \
    "ld a5, 8(%[request])\n\t" \
    "slli a3, t6, 3\n\t" \
    "7:\n\t" \
    "addi t2, t2, 8\n\t" \
    "and t3, t2, a7\n\t" \
    "add t3, t3, a6\n\t" \
    "beq t6, a5, 8f\n\t" \
    "andi t4, t6, -8\n\t" \
    "ld t4, 0(t4)\n\t" \
    "addi t6, t6, 7\n\t" \
    "andi a4, t6, -8\n\t" \
    "ld a4, 0(a4)\n\t" \
    "addi t6, t6, 1\n\t" \
    "srl t4, t4, a3\n\t" \
    "slli a4, a4, 1\n\t" \
    "not a3, a3\n\t" \
    "sll a4, a4, a3\n\t" \
    "not a3, a3\n\t" \
    "or t4, t4, a4\n\t" \
    "sd t4, 0(t3)\n\t" \
    "j 7b\n\t" \
    "8:\n\t" \
    "ld t4, 16(%[request])\n\t" \
    "sd t4, 0(t3)\n\t" \
    "ld t2, 0(t1)\n\t" \
    "ld t4, 32(%[request])\n\t" \
    "add t2, t2, t4\n\t" \
    "and t3, t2, a7\n\t" \
    "add t3, t3, a6\n\t" \
    "lui t4, 16\n\t" \
    "add t5, t5, t4\n\t" \
    "sd t5, 0(t3)\n\t" \
    "fence rw, w\n\t" \
    "sd t2, 0(t1)\n\t" \
    "3:\n\t" \
    ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t" \
    ".option push\n\t" \
    ".option norelax\n\t" \
    ".balign 4\n\t" \
    ".4byte 0xf1401073\n\t" \
    "4:\n\t" \
    "jump %l[percid_slow], t1\n\t" \
    ".option pop\n\t" \
    ".popsection"

#endif

#endif
