// What the charts need of Vega, under one name, so that a page with the bundle written into it can use it as well.
import {View, parse} from "vega";
import {compile} from "vega-lite";
import {expressionInterpreter} from "vega-interpreter";

globalThis.rltracerVega = {View, parse, compile, expressionInterpreter};
