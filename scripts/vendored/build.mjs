// Writes the JavaScript that is kept in this repository: Vega, bundled into one module that loads nothing else, with the
// versions it holds and every licence beside it; and axe-core, as it is published, for the tests in a browser.
import {copyFileSync, existsSync, readFileSync, readdirSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {build} from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const output = join(here, "..", "..", "datasette_rltracer", "static");
const packageOf = (folder) => JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
const {dependencies} = packageOf(".");
const versions = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`).join(", ");

const result = await build({
  entryPoints: [join(here, "entry.mjs")],
  outfile: join(output, "vega.mjs"),
  absWorkingDir: here,
  banner: {js: `/* ${versions}; licences in vega.LICENSES.txt; made by scripts/vendored/build.mjs */`},
  bundle: true,
  charset: "ascii",
  format: "esm",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
});

// A package may have been published with its dependencies written into it; a set is walked to its growing end.
const folders = new Set();
for (const [path, {bytesInOutput}] of Object.entries(Object.values(result.metafile.outputs)[0].inputs)) {
  const found = path.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//);
  if (found && bytesInOutput) folders.add(found[1]);
}
for (const folder of folders) {
  for (const name of Object.keys(packageOf(folder).dependencies ?? {})) {
    if (existsSync(join(here, "node_modules", name))) folders.add(`node_modules/${name}`);
  }
}
const licences = [...folders].sort().map((folder) => {
  const {name, version, license} = packageOf(folder);
  const file = readdirSync(join(here, folder)).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} ${version} (${license}) comes without a licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(here, folder, file), "utf8").trim()}\n`;
});
writeFileSync(join(output, "vega.LICENSES.txt"), licences.join(`\n${"-".repeat(80)}\n\n`));

const axe = join(here, "node_modules", "axe-core");
const tests = join(here, "..", "..", "tests", "browser");
copyFileSync(join(axe, "axe.min.js"), join(tests, "axe.min.js"));
copyFileSync(join(axe, "LICENSE"), join(tests, "axe.LICENSE.txt"));
copyFileSync(join(axe, "LICENSE-3RD-PARTY.txt"), join(tests, "axe.LICENSE-3RD-PARTY.txt"));

console.log(`${versions}: ${licences.length} packages`);
