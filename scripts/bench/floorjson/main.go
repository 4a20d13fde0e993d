// Floorjson does nothing either, but could read and print JSON, as any plugin has to:
// what it takes more than floor is the price of linking encoding/json and fmt.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 1 {
		var v map[string]any
		fmt.Println(json.Unmarshal([]byte(os.Args[1]), &v), v)
	}
}
