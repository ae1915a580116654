float smooth(float value) { return value / (1.0f + value); }
