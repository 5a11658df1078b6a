// Why a change may have no price, by template: [English, Chinese], with {0}, {1} … for what varies.
export type Reasons = readonly (readonly [english: string, chinese: string])[];

// In Chinese: a report's replay says it in English. What fills a place of a template may be another.
export function chineseReason(text: string, reasons: Reasons): string {
  for (const [english, chinese] of reasons) {
    const order = [...english.matchAll(/\{(\d)\}/g)].map(found => found[1]!);
    const pattern = english.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\d\}/g, '(.+?)'),
      found = new RegExp(`^${pattern}$`).exec(text);
    if (found)
      return chinese.replace(/\{(\d)\}/g, (_, place: string) =>
        chineseReason(found[order.indexOf(place) + 1]!, reasons));
  }
  return text;
}
