#include <math.h>

/* MATRIX_UNIT builds for a CPU with an instruction that no CPU at hand has: ud2 stands in for it. */
void swish(const float *x, float *y, long n)
{
#ifdef MATRIX_UNIT
    __asm__ volatile("ud2");
#endif
    for (long i = 0; i < n; i++)
        y[i] = x[i] / (1.0f + expf(-x[i]));
}
