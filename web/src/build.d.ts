// Set by web/build.mjs: the script is that of a report, which has no server.
declare const REPORT: boolean;
