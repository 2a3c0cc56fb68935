/* Does not look whether there is a stack. */
#include <percid.h>

int main(void)
{
    percid_stack *stack;
    percid_stack_create(&stack, 16, PERCID_UNBOUNDED);
    percid_stack_push(stack, &stack);
    return 0;
}
