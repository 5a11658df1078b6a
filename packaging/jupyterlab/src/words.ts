/** The extension's texts, in the two languages of Stageline. */
const words = {
  open: ['Open in Stageline', '用 Stageline 打开'],
  here: ['Open This Folder in Stageline', '用 Stageline 打开当前文件夹'],
  reading: ['Reading {}…', '正在读取 {}…'],
  failed: ['{} could not be opened.', '无法打开 {}。'],
};

export function say(language: 'en' | 'zh', word: keyof typeof words, name = ''): string {
  return words[word][language === 'zh' ? 1 : 0].replace('{}', name);
}
