#pragma once
#include "stand_in/device.h"
