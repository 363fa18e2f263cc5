"use strict";
if (parent !== window) parent.postMessage(JSON.parse(document.getElementById("data").textContent), "*");
