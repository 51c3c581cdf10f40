#pragma once
#include <kp/deep/second.cuh>
// #include <kp/not_there.cuh>
/*
#include <kp/not_there.cuh>
*/
#include <kp/third.cuh>
