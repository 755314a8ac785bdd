// Numbers behind the vector versions of 2^x.
#pragma once

namespace kvlab {

constexpr float kLog2E = 1.44269504088896341F;

// 2^r for |r| <= 1/2, highest power first: the polynomials with the smallest largest relative error
// there, 2.6e-6 and 2e-8 (before rounding, and exactly 1 at 0).
constexpr float kExp2Degree4[] = {0.00957010221F, 0.0559178628F, 0.240247443F, 0.693121791F,
                                  0.999999285F};
constexpr float kExp2Degree6[] = {0.000153458124F,
                                  0.00133999309F,
                                  0.00961848907F,
                                  0.0555032864F,
                                  0.240226462F,
                                  0.693147182F,
                                  1.0F};

}  // namespace kvlab
