// The product reads the version of the toolkit here.
#pragma once
#define CUDA_VERSION 13000
#include "stand_in/device.h"
