// The description of every analysis in src/analyses/FOLDER/words.json, by family and in its order; web/build.mjs puts
// it together.
declare module 'analyses' {
  const analyses: Record<string, [name: string, en: string, zh: string][]>;
  export default analyses;
}
