// The stand-in of tensor cores.
#pragma once
#include "half.h"
