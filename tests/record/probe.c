/* Begins a program suspended and lets it run, or ends it, with the flags, offsets and sizes of the declarations, which the test passes as macros.
 * Prints what the system answered. The child is this program itself: it writes a file and ends with code 7.
 */
#include <stdio.h>
#include <string.h>
#include <windows.h>

static unsigned long long handle_at(const unsigned char *from, int at) {
  unsigned long long value = 0;
  memcpy(&value, from + at, sizeof(void *));
  return value;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "child")) {
    FILE *file = fopen(argv[2], "w");
    fclose(file);
    return 7;
  }
  WCHAR self[MAX_PATH], line[2 * MAX_PATH], mark[MAX_PATH];
  GetModuleFileNameW(NULL, self, MAX_PATH);
  MultiByteToWideChar(CP_UTF8, 0, argv[2], -1, mark, MAX_PATH);
  swprintf(line, 2 * MAX_PATH, L"\"%ls\" child %ls", self, mark);
  unsigned char startup[STARTUP_SIZE] = {0}, information[INFORMATION_SIZE] = {0};
  unsigned int size = STARTUP_SIZE;
  memcpy(startup + STARTUP_CB, &size, 4);
  BOOL begun = CreateProcessW(NULL, line, NULL, NULL, FALSE, FLAG_SUSPENDED, NULL, NULL, (void *)startup, (void *)information);
  HANDLE process = (HANDLE)(uintptr_t)handle_at(information, PROCESS_AT), thread = (HANDLE)(uintptr_t)handle_at(information, THREAD_AT);
  unsigned int pid;
  memcpy(&pid, information + PID_AT, 4);
  unsigned long before = WaitForSingleObject(process, 300);
  int had_run = GetFileAttributesW(mark) != INVALID_FILE_ATTRIBUTES, by_pid = GetProcessId(process) == pid;
  HANDLE again = OpenProcess(FLAG_QUERY, FALSE, pid);
  long resumed = -1;
  if (!strcmp(argv[1], "resume")) resumed = (long)ResumeThread(thread);
  else TerminateProcess(process, 1);
  unsigned long after = WaitForSingleObject(process, 20000);
  DWORD code = 0;
  GetExitCodeProcess(process, &code);
  printf("{\"begun\": %d, \"by_pid\": %d, \"opened\": %d, \"before\": %lu, \"had_run\": %d, \"resumed\": %ld, \"after\": %lu, \"code\": %lu, "
         "\"has_run\": %d}\n",
         begun, by_pid, again != NULL, before, had_run, resumed, after, code, GetFileAttributesW(mark) != INVALID_FILE_ATTRIBUTES);
  return 0;
}
