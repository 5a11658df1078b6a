// Stands here until the viewer does: says what the server knows.
const app = document.getElementById('app');
void fetch('/api/status').then(async answer => {
  if (app) app.textContent = await answer.text();
});
