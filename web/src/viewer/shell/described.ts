// The keys of a description that say sizes: what else it holds would only make the address longer.
export function sizesOf(text: string): string {
  const small = (value: unknown, key: string): boolean =>
    typeof value === 'number' || typeof value === 'boolean' || value === null || key === 'model_type' ||
    key === 'layers' || key === 'text_config';
  const pick = (from: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(from).filter(([key, value]) => small(value, key)).map((
        [key, value],
      ) => [key, key === 'text_config' && value ? pick(value as Record<string, unknown>) : value]),
    );
  return JSON.stringify(pick(JSON.parse(text) as Record<string, unknown>));
}

// The description of the model and of its devices, with the names of what-if's flags. Memory is checked only where a
// description is given.
const DESCRIBED = ['model', 'memory', 'seq', 'micro_batch_size', 'tp', 'ep', 'recompute'] as const;
export type Described = Partial<Record<typeof DESCRIBED[number], string>>;
const LONGEST_MODEL = 2000; // that a link may hold

// The description as the address has it, or none: one that is too long for a link is left out with its numbers.
export function inAddress(described: Described): Described {
  const {model} = described, given = DESCRIBED.filter(name => described[name]);
  return model && model.length <= LONGEST_MODEL ? Object.fromEntries(given.map(name => [name, described[name]])) : {};
}
// A report knows no memory.
export const describedOf = (fields: URLSearchParams): Described => REPORT ? {} : inAddress(Object.fromEntries(fields));
