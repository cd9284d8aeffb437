package sqlite_test
import ("testing";"database/sql";"path/filepath";"fmt";"time";"mcpledger/events/sqlite")
func TestZZ(t *testing.T){
 dir:=t.TempDir()
 l,_:=sqlite.Open(ctx,dir,sqlite.Options{Now:time.Now})
 for i:=0;i<1000;i++{ b:=repeatedFailure(i); add(t,l,b...)}
 closeLog(t,l)
 db,_:=sql.Open("sqlite",filepath.Join(dir,"ledger.db"))
 rows,err:=db.Query("select name,count(*),sum(payload),sum(unused),sum(pgsize) from dbstat group by name")
 if err!=nil{t.Fatal(err)}
 for rows.Next(){var n string;var a,b,c,d int;rows.Scan(&n,&a,&b,&c,&d);fmt.Println(n,a,b,c,d)}
 var x,y float64
 db.QueryRow("select avg(length(data)) from events where type=(select id from names where name='discovery.failed')").Scan(&x)
 db.QueryRow("select avg(length(data)) from events where type=(select id from names where name='discovery.started')").Scan(&y)
 fmt.Println(x,y)
}
