// Reads the answer to tools/list and compiles every schema of every tool with Ajv in strict mode; names what it refuses.
const { createRequire } = require("node:module");
const { readFileSync } = require("node:fs");

const installed = createRequire(`${process.cwd()}/`);
const Ajv = installed("ajv/dist/2020").default;
const addFormats = installed("ajv-formats").default;

const refused = [];
let compiled = 0;
for (const tool of JSON.parse(readFileSync(0, "utf8")).tools) {
  for (const side of ["inputSchema", "outputSchema"].filter((one) => tool[one])) {
    const ajv = new Ajv({ strict: true });
    addFormats(ajv);
    try {
      ajv.compile(tool[side]);
      compiled += 1;
    } catch (error) {
      refused.push(`${tool.name} ${side}: ${error.message}`);
    }
  }
}
console.log(JSON.stringify({ compiled, refused }));
