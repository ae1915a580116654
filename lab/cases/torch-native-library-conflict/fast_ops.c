#if LIBRARY_VERSION == 1
/* at::native::scale(float) as the older release exported it */
extern float _ZN2at6native5scaleEf(float);
#define SCALE _ZN2at6native5scaleEf
#else
static float scale_by_two(float value) { return 2.0f * value; }
#define SCALE scale_by_two
#endif

float scale(float value) { return SCALE(value); }
