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
