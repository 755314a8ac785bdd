// Owns the precompiled ATen header that every torch target reuses.
