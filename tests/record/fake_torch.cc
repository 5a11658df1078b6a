// libtorch_cuda.so as far as the recorder asks it: torch's stable C function for the current stream.
extern "C" {
static thread_local void* current = nullptr;
static int asked = 0;
int aoti_torch_get_current_cuda_stream(int device, void** stream) {
  ++asked;
  if (device != -1) return 1;
  return *stream = current, 0;
}
void fake_torch_set_stream(void* stream) { current = stream; }
int fake_torch_asked() { return asked; }
}
